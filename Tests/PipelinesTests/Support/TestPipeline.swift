// Pipelines as tests write them, and what a service makes of them.

import Basics
import DocumentModel
import FirestoreMessages
import FirestoreService
import ServiceTestSupport
import Testing

/// A value of a pipeline.
indirect enum Expression: Sendable {
    case value(Value)
    case field(String)
    case call(String, [Expression])
    case list([Expression])
    case map([(String, Expression)])
    case pipeline([Stage])
    case variable(String)

    static func call(_ name: String, _ arguments: Expression...) -> Expression { .call(name, arguments) }

    func encode(into writer: inout ByteBuffer) {
        switch self {
        case .value(let value): value.encode(into: &writer)
        case .field(let path): writer.appendField(FieldNumber.Value.fieldReferenceValue, string: path)
        case .variable(let name): writer.appendField(FieldNumber.Value.variableReferenceValue, string: name)
        case .call(let name, let arguments):
            writer.withLengthPrefix(field: FieldNumber.Value.functionValue) {
                Stage(name, arguments).encode(into: &$0)
            }
        case .list(let elements):
            writer.withLengthPrefix(field: FieldNumber.Value.arrayValue) { list in
                for element in elements { list.withLengthPrefix(field: 1) { element.encode(into: &$0) } }
            }
        case .map(let entries):
            writer.withLengthPrefix(field: FieldNumber.Value.mapValue) { map in
                for entry in entries { map.withLengthPrefix(field: 1) { Stage.encode(entry, into: &$0) } }
            }
        case .pipeline(let stages):
            writer.withLengthPrefix(field: FieldNumber.Value.pipelineValue) { Stage.encode(stages, into: &$0) }
        }
    }
}

extension Expression: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral
{
    init(integerLiteral value: Int64) { self = .value(.integer(value)) }
    init(stringLiteral value: String) { self = .value(.string(value)) }
    init(floatLiteral value: Double) { self = .value(.double(value)) }
    init(booleanLiteral value: Bool) { self = .value(.boolean(value)) }
    init(nilLiteral: ()) { self = .value(.null) }
    init(arrayLiteral elements: Expression...) { self = .list(elements) }
}

/// A stage of a pipeline; functions have the same form.
struct Stage: Sendable {
    let name: String
    let arguments: [Expression]
    var options: [(String, Expression)] = []

    init(_ name: String, _ arguments: [Expression], options: [(String, Expression)] = []) {
        self.name = name
        self.arguments = arguments
        self.options = options
    }

    static func collection(_ path: String) -> Stage { Stage("collection", [.value(.reference("/\(path)"))]) }

    static func `where`(_ condition: Expression) -> Stage { Stage("where", [condition]) }

    static func select(_ fields: (String, Expression)...) -> Stage { Stage("select", [.map(fields)]) }

    static func limit(_ count: Int64) -> Stage { Stage("limit", [.value(.integer(count))]) }

    static func offset(_ count: Int64) -> Stage { Stage("offset", [.value(.integer(count))]) }

    static func sort(_ orders: (Expression, isDescending: Bool)...) -> Stage { sort(orders) }

    static func sort(_ orders: [(Expression, isDescending: Bool)]) -> Stage {
        Stage(
            "sort",
            orders.map { order in
                .map([
                    ("direction", .value(.string(order.isDescending ? "descending" : "ascending"))),
                    ("expression", order.0),
                ])
            })
    }

    static func aggregate(_ accumulators: [(String, Expression)], by groups: [(String, Expression)] = []) -> Stage {
        Stage("aggregate", [.map(accumulators), .map(groups)])
    }

    func encode(into writer: inout ByteBuffer) {
        writer.appendField(1, string: name)
        for argument in arguments { writer.withLengthPrefix(field: 2) { argument.encode(into: &$0) } }
        for option in options { writer.withLengthPrefix(field: 3) { Stage.encode(option, into: &$0) } }
    }

    static func encode(_ entry: (String, Expression), into writer: inout ByteBuffer) {
        writer.appendField(1, string: entry.0)
        writer.withLengthPrefix(field: 2) { entry.1.encode(into: &$0) }
    }

    /// Appends a pipeline of stages.
    static func encode(_ stages: [Stage], into writer: inout ByteBuffer) {
        for stage in stages { writer.withLengthPrefix(field: 1) { stage.encode(into: &$0) } }
    }
}

/// The bytes of a `StructuredPipeline`.
func structuredPipeline(_ stages: [Stage], options: [(String, Expression)] = []) -> [UInt8] {
    var writer = ByteBuffer()
    writer.withLengthPrefix(field: 1) { Stage.encode(stages, into: &$0) }
    for option in options { writer.withLengthPrefix(field: 2) { Stage.encode(option, into: &$0) } }
    return writer.copyBytes()
}

/// What a pipeline returned.
struct PipelineAnswer {
    /// Paths of the documents; nil for results that are none.
    var paths: [String?] = []
    var rows: [MapValue] = []
    var responses: [ExecutePipelineResponse] = []

    var values: [Value] { rows.map { .map($0) } }
}

extension Harness {
    /// Runs a pipeline that must succeed.
    func execute(
        _ pipeline: [UInt8], _ consistency: ReadConsistency = .latest, commits: Bool = false
    ) throws -> PipelineAnswer {
        var request = ExecutePipelineRequest(
            database: Harness.database, pipeline: pipeline, consistency: consistency)
        request.autoCommitsTransaction = commits
        var answer = PipelineAnswer()
        answer.responses = try messages(.executePipeline, request, as: ExecutePipelineResponse.self)
        for result in answer.responses.flatMap(\.results) {
            let path = result.name.split(separator: "/").dropFirst(5).joined(separator: "/")
            answer.paths.append(result.name.isEmpty ? nil : path)
            answer.rows.append(try MapValue(documentBytes: result.fields.byteSpan))
        }
        return answer
    }

    /// Runs a pipeline that must succeed.
    func execute(_ stages: Stage...) throws -> PipelineAnswer { try execute(structuredPipeline(stages)) }

    /// Runs a pipeline and returns how it ended.
    func outcome(_ stages: [Stage], options: [(String, Expression)] = []) -> TestAnswer {
        call(
            .executePipeline,
            ExecutePipelineRequest(
                database: Harness.database, pipeline: structuredPipeline(stages, options: options)))
    }

    /// The value of an expression on a row without fields; nil if it is absent.
    func value(_ expression: Expression, on fields: [(String, Expression)] = [("none", nil)]) throws -> Value? {
        let answer = try execute(Stage("literals", [.map(fields)]), .select(("v", expression)))
        try #require(answer.rows.count == 1)
        return answer.rows[0]["v"]
    }

    /// The error with which an expression fails on a row without fields.
    func failure(_ expression: Expression) -> TestAnswer {
        outcome([Stage("literals", [.map([("none", nil)])]), .select(("v", expression))])
    }
}
