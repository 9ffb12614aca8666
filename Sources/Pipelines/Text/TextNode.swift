// The tree of a pipeline that was written as text, and its bytes.

internal import Basics
internal import DocumentModel

/// A value of a pipeline.
indirect enum TextNode {
    typealias Entry = (name: String, value: TextNode)

    /// A stage or a function.
    struct Call {
        let name: String
        var arguments: [TextNode] = []
        var options: [Entry] = []

        func encode(into writer: inout ByteBuffer) {
            typealias Field = FieldNumber.Pipeline.Stage
            writer.appendField(Field.name, string: name)
            for argument in arguments { writer.withLengthPrefix(field: Field.args) { argument.encode(into: &$0) } }
            for option in options {
                writer.withLengthPrefix(field: Field.options) { TextNode.encode(option, into: &$0) }
            }
        }
    }

    case literal(Value)
    case field(String)
    case variable(String)
    case call(Call)
    case list([TextNode])
    case map([Entry])
    case pipeline([Call])

    static func call(_ name: String, _ arguments: [TextNode]) -> TextNode {
        .call(Call(name: name, arguments: arguments))
    }

    /// Appends the `Value` message.
    func encode(into writer: inout ByteBuffer) {
        typealias Field = FieldNumber.Value
        switch self {
        case .literal(let value): value.encode(into: &writer)
        case .field(let path): writer.appendField(Field.fieldReferenceValue, string: path)
        case .variable(let name): writer.appendField(Field.variableReferenceValue, string: name)
        case .call(let call): writer.withLengthPrefix(field: Field.functionValue) { call.encode(into: &$0) }
        case .list(let elements):
            writer.withLengthPrefix(field: Field.arrayValue) { list in
                for element in elements {
                    list.withLengthPrefix(field: FieldNumber.ArrayValue.values) { element.encode(into: &$0) }
                }
            }
        case .map(let entries):
            writer.withLengthPrefix(field: Field.mapValue) { map in
                for entry in entries {
                    map.withLengthPrefix(field: FieldNumber.MapValue.fields) { TextNode.encode(entry, into: &$0) }
                }
            }
        case .pipeline(let stages):
            writer.withLengthPrefix(field: Field.pipelineValue) { TextNode.encode(stages, into: &$0) }
        }
    }

    /// Appends the stages of a `Pipeline` message.
    static func encode(_ stages: [Call], into writer: inout ByteBuffer) {
        for stage in stages {
            writer.withLengthPrefix(field: FieldNumber.Pipeline.stages) { stage.encode(into: &$0) }
        }
    }

    /// Appends an entry of a map.
    static func encode(_ entry: Entry, into writer: inout ByteBuffer) {
        typealias Field = FieldNumber.MapValue.FieldsEntry
        writer.appendField(Field.key, string: entry.name)
        writer.withLengthPrefix(field: Field.value) { entry.value.encode(into: &$0) }
    }
}
