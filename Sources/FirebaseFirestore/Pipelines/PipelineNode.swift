// Pipelines as a program has built them, and their bytes.

import Basics
import DocumentCoding
import DocumentModel

/// A value of a stage or a function.
indirect enum PipelineNode: Sendable {
    /// A constant; nil is null.
    case value((any Sendable)?)
    /// The bytes of a `Value` message.
    case encoded([UInt8])
    case field(String)
    case variable(String)
    case call(NodeCall)
    case list([PipelineNode])
    case map([NamedNode])
    case pipeline([NodeCall])
    /// What a request with it fails with: INVALID_ARGUMENT and this message.
    case invalid(String)

    /// The node of what a program passes: an expression, an array or a dictionary with expressions in it, or a
    /// constant.
    init(_ value: (any Sendable)?) {
        switch value {
        case let expression as any Expression: self = expression.node
        case let name as any ArgumentName: self = .value(name.rawValue)
        case let elements as [(any Sendable)?]:
            self = .call(NodeCall(name: "array", arguments: elements.map { PipelineNode($0) }))
        case let entries as [String: (any Sendable)?]:
            self = .call(NodeCall(name: "map", arguments: Self.entries(entries)))
        default: self = .value(value)
        }
    }

    /// The node of an argument of a stage that has no method: a total, or what a map or an array of the stage contains.
    /// Such maps and arrays are not expressions.
    init(stageArgument value: (any Sendable)?) {
        switch value {
        case let total as AggregateFunction: self = .call(total.call)
        case let elements as [(any Sendable)?]: self = .list(elements.map { PipelineNode(stageArgument: $0) })
        case let entries as [String: (any Sendable)?]:
            self = .map(NamedNode.list(entries) { PipelineNode(stageArgument: $0) })
        default: self.init(value)
        }
    }

    /// The arguments of the function `map`.
    static func entries(_ entries: [String: (any Sendable)?]) -> [PipelineNode] {
        NamedNode.list(entries).flatMap { [.value($0.name), $0.node] }
    }

    /// A map of nodes with different names.
    ///
    /// - Parameter place: what the message of a request with one name for two of them calls the list.
    static func map(_ nodes: [NamedNode], of place: String) -> PipelineNode {
        var names: Set<UTF8Text> = []
        for node in nodes where !names.insert(UTF8Text(node.name)).inserted {
            return .invalid("Duplicate alias '\(node.name)' found in \(place).")
        }
        return .map(nodes)
    }

    /// A reference to a place below the documents root.
    static func reference(_ path: String) -> PipelineNode { .encoded(QueryValues.reference("/" + path).bytes) }

    /// Appends the `Value` message.
    func encode(into writer: inout ByteBuffer, _ firestore: Firestore) throws(RuleViolation) {
        typealias Field = FieldNumber.Value
        switch self {
        case .value(nil): Value.null.encode(into: &writer)
        case .value(let value?):
            let bytes = try QueryValues.encode(value, firestore: firestore, allowsNestedArrays: true).bytes
            writer.append(bytes.byteSpan)
        case .encoded(let bytes): writer.append(bytes.byteSpan)
        case .field(let path): writer.appendField(Field.fieldReferenceValue, string: path)
        case .variable(let name): writer.appendField(Field.variableReferenceValue, string: name)
        case .call(let call):
            try writer.withLengthPrefix(field: Field.functionValue) { (writer) throws(RuleViolation) in
                try call.encode(into: &writer, firestore)
            }
        case .list(let elements):
            try writer.withLengthPrefix(field: Field.arrayValue) { (list) throws(RuleViolation) in
                for element in elements {
                    try list.withLengthPrefix(field: FieldNumber.ArrayValue.values) {
                        (writer) throws(RuleViolation) in
                        try element.encode(into: &writer, firestore)
                    }
                }
            }
        case .map(let entries):
            try writer.withLengthPrefix(field: Field.mapValue) { (map) throws(RuleViolation) in
                for entry in entries { try entry.encode(field: FieldNumber.MapValue.fields, into: &map, firestore) }
            }
        case .invalid(let message): throw RuleViolation(message)
        case .pipeline(let stages):
            try writer.withLengthPrefix(field: Field.pipelineValue) { (writer) throws(RuleViolation) in
                try NodeCall.encode(stages, into: &writer, firestore)
            }
        }
    }
}

extension PipelineNode {
    /// Adds what subqueries in the node read.
    func addReads(to scope: inout ReadScope) {
        switch self {
        case .value, .encoded, .field, .variable, .invalid: return
        case .call(let call): call.addReads(to: &scope)
        case .list(let elements): for element in elements { element.addReads(to: &scope) }
        case .map(let entries): for entry in entries { entry.node.addReads(to: &scope) }
        case .pipeline(let stages): for stage in stages { stage.addReads(to: &scope) }
        }
    }
}

/// An entry of a map.
struct NamedNode: Sendable {
    let name: String
    let node: PipelineNode

    init(_ name: String, _ node: PipelineNode) {
        self.name = name
        self.node = node
    }

    /// Values or expressions by their names, in the order of these.
    static func list(
        _ values: [String: (any Sendable)?], _ node: ((any Sendable)?) -> PipelineNode = { PipelineNode($0) }
    ) -> [NamedNode] {
        values.sorted { $0.key < $1.key }.map { NamedNode($0.key, node($0.value)) }
    }

    func encode(field: Int, into writer: inout ByteBuffer, _ firestore: Firestore) throws(RuleViolation) {
        typealias Field = FieldNumber.MapValue.FieldsEntry
        try writer.withLengthPrefix(field: field) { (entry) throws(RuleViolation) in
            entry.appendField(Field.key, string: name)
            try entry.withLengthPrefix(field: Field.value) { (value) throws(RuleViolation) in
                try node.encode(into: &value, firestore)
            }
        }
    }
}

/// A stage or a function, which have the same fields.
struct NodeCall: Sendable {
    let name: String
    var arguments: [PipelineNode] = []
    var options: [NamedNode] = []
    /// What a stage reads of the database, without the subqueries in its arguments; nil for other stages and functions.
    var source: ReadScope?

    /// Adds what the stage or function reads, and the subqueries in it.
    func addReads(to scope: inout ReadScope) {
        if let source { scope.formUnion(source) }
        for argument in arguments { argument.addReads(to: &scope) }
        for option in options { option.node.addReads(to: &scope) }
    }

    func encode(into writer: inout ByteBuffer, _ firestore: Firestore) throws(RuleViolation) {
        typealias Field = FieldNumber.Pipeline.Stage
        writer.appendField(Field.name, string: name)
        for argument in arguments {
            try writer.withLengthPrefix(field: Field.args) { (value) throws(RuleViolation) in
                try argument.encode(into: &value, firestore)
            }
        }
        for option in options { try option.encode(field: Field.options, into: &writer, firestore) }
    }

    /// Appends the stages of a `Pipeline` message.
    static func encode(
        _ stages: [NodeCall], into writer: inout ByteBuffer, _ firestore: Firestore
    ) throws(RuleViolation) {
        for stage in stages {
            try writer.withLengthPrefix(field: FieldNumber.Pipeline.stages) { (writer) throws(RuleViolation) in
                try stage.encode(into: &writer, firestore)
            }
        }
    }
}
