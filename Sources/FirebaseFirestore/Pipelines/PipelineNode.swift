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

    /// The node of what a program passes: an expression, an array or a dictionary with expressions in it, or a
    /// constant.
    init(_ value: (any Sendable)?) {
        switch value {
        case let expression as any Expression: self = expression.node
        case let elements as [any Sendable]: self = .list(elements.map { PipelineNode($0) })
        case let entries as [String: any Sendable]:
            self = .map(entries.sorted { $0.key < $1.key }.map { NamedNode($0.key, PipelineNode($0.value)) })
        default: self = .value(value)
        }
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
        case .pipeline(let stages):
            try writer.withLengthPrefix(field: Field.pipelineValue) { (writer) throws(RuleViolation) in
                try NodeCall.encode(stages, into: &writer, firestore)
            }
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
