// A pipeline as the request writes it.

internal import Basics
internal import DocumentModel
internal import Expressions

/// A value in a pipeline: what stages and functions take.
indirect enum PipelineValue: Sendable {
    /// A value without expressions in it.
    case literal(Operand)
    /// A field of the row.
    case field(FieldPath)
    /// Something about the document that a row comes from.
    case document(DocumentProperty)
    case variable(String)
    case call(PipelineCall)
    case pipeline([PipelineStage])
    /// An array that has expressions in it.
    case list([PipelineValue])
    /// A map that has expressions in it, with distinct keys.
    case map([NamedValue])
}

/// A name with a value: a field of a stage, an option.
struct NamedValue: Sendable {
    let name: String
    let value: PipelineValue
}

/// What a row knows of its document besides the fields. The raw value is the number of the expressions' input.
enum DocumentProperty: Int, Sendable {
    case name = 1
    case createTime = 2
    case updateTime = 3
    /// How well it matches the search that found it.
    case score = 4
}

/// A function with its arguments.
struct PipelineCall: Sendable {
    let name: String
    let arguments: [PipelineValue]
    let options: [NamedValue]
}

/// A stage with its arguments.
struct PipelineStage: Sendable {
    let name: String
    let arguments: [PipelineValue]
    let options: [NamedValue]
}

extension PipelineValue {
    var literal: Operand? {
        if case .literal(let operand) = self { operand } else { nil }
    }

    /// The text of a literal string.
    var text: String? {
        if case .literal(.string(let text)) = self { text } else { nil }
    }

    /// The entries of a map.
    var entries: [NamedValue]? {
        switch self {
        case .map(let entries): entries
        case .literal(let operand):
            operand.entries.map { $0.entries.map { NamedValue(name: $0.key, value: .literal($0.value)) } }
        default: nil
        }
    }

    /// The value with calls of `array` and `map` on literals taken as the literals that they make.
    var folded: PipelineValue {
        guard case .call(let call) = self, call.options.isEmpty else { return self }
        var operands: [Operand] = []
        for argument in call.arguments {
            guard let literal = argument.folded.literal else { return self }
            operands.append(literal)
        }
        return call.name == "array" ? .literal(.list(operands)) : self
    }
}
