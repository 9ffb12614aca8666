// Reading a `StructuredPipeline`: bounded in depth, in parts and in memory.

internal import Basics
internal import DocumentModel
internal import Expressions

/// A pipeline with its options.
struct ParsedPipeline: Sendable {
    let stages: [PipelineStage]
    let options: [NamedValue]

    /// Reads the message.
    ///
    /// - Throws: `INVALID_ARGUMENT` for malformed bytes and for what exceeds ``PipelineLimits``.
    init(structuredPipeline wire: RawSpan) throws(RequestError) {
        var parser = PipelineParser()
        do {
            (stages, options) = try parser.structuredPipeline(wire)
        } catch {
            throw RequestError(queryFault: error)
        }
    }
}

/// Counts the parts while it reads.
private struct PipelineParser {
    private typealias Field = FieldNumber.Pipeline

    private var parts = 0
    private var stageCount = 0

    mutating func structuredPipeline(_ wire: RawSpan) throws -> ([PipelineStage], [NamedValue]) {
        var stages: [PipelineStage] = []
        var options: [NamedValue] = []
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case FieldNumber.StructuredPipeline.pipeline: stages = try pipeline(try reader.span(tag), depth: 0)
            case FieldNumber.StructuredPipeline.options: options.append(try entry(try reader.span(tag), depth: 0))
            default: try reader.skip(tag)
            }
        }
        return (stages, options)
    }

    private mutating func pipeline(_ wire: RawSpan, depth: Int) throws -> [PipelineStage] {
        var stages: [PipelineStage] = []
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            guard tag.fieldNumber == Field.stages else {
                try reader.skip(tag)
                continue
            }
            stageCount += 1
            if stageCount > PipelineLimits.stages {
                throw RequestError.invalidArgument("A pipeline may have at most \(PipelineLimits.stages) stages.")
            }
            let parts = try callable(try reader.span(tag), isStage: true, depth: depth)
            stages.append(PipelineStage(name: parts.name, arguments: parts.arguments, options: parts.options))
        }
        return stages
    }

    /// Reads a stage or a function, which have the same fields.
    private mutating func callable(
        _ wire: RawSpan, isStage: Bool = false, depth: Int
    ) throws -> (name: String, arguments: [PipelineValue], options: [NamedValue]) {
        try count(depth)
        var name = ""
        var arguments: [PipelineValue] = []
        var options: [NamedValue] = []
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.Stage.name: name = try reader.string(tag)
            case Field.Stage.args: arguments.append(try value(try reader.span(tag), isPlace: isStage, depth: depth + 1))
            case Field.Stage.options: options.append(try entry(try reader.span(tag), depth: depth + 1))
            default: try reader.skip(tag)
            }
        }
        if name.isEmpty { throw RequestError.invalidArgument("A stage or a function of the pipeline has no name.") }
        return (name, arguments, options)
    }

    /// Reads an entry of a map of values.
    private mutating func entry(_ wire: RawSpan, depth: Int) throws -> NamedValue {
        var name = ""
        var content: PipelineValue?
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case FieldNumber.MapValue.FieldsEntry.key: name = try reader.string(tag)
            case FieldNumber.MapValue.FieldsEntry.value: content = try value(try reader.span(tag), depth: depth + 1)
            default: try reader.skip(tag)
            }
        }
        guard let content else { throw RequestError.invalidArgument("The entry \"\(name)\" of a map has no value.") }
        return NamedValue(name: name, value: content)
    }

    /// Reads a `Value` message; of several types the last one counts.
    ///
    /// - Parameter isPlace: a reference is checked by the stage, which may take paths and collections.
    private mutating func value(_ wire: RawSpan, isPlace: Bool = false, depth: Int) throws -> PipelineValue {
        try count(depth)
        var result: PipelineValue?
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case FieldNumber.Value.fieldReferenceValue: result = try PipelineParser.field(try reader.string(tag))
            case FieldNumber.Value.variableReferenceValue: result = .variable(try reader.string(tag))
            case FieldNumber.Value.functionValue:
                let parts = try callable(try reader.span(tag), depth: depth)
                result = .call(
                    PipelineCall(name: parts.name, arguments: parts.arguments, options: parts.options))
            case FieldNumber.Value.pipelineValue:
                result = .pipeline(try pipeline(try reader.span(tag), depth: depth + 1))
            case FieldNumber.Value.arrayValue: result = try list(try reader.span(tag), depth: depth)
            case FieldNumber.Value.mapValue: result = try map(try reader.span(tag), depth: depth)
            case FieldNumber.Value.referenceValue where isPlace:
                result = .literal(.reference(try reader.string(tag)))
            default:
                try reader.skip(tag)
                result = nil
            }
        }
        // What is left are the values without parts: they are checked as operands of queries are.
        return try result ?? .literal(Operand(try EncodedValue(operand: wire)))
    }

    private mutating func list(_ wire: RawSpan, depth: Int) throws -> PipelineValue {
        var elements: [PipelineValue] = []
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == FieldNumber.ArrayValue.values {
                elements.append(try value(try reader.span(tag), depth: depth + 1))
            } else {
                try reader.skip(tag)
            }
        }
        let literals = elements.compactMap(\.literal)
        return literals.count == elements.count ? .literal(.list(literals)) : .list(elements)
    }

    private mutating func map(_ wire: RawSpan, depth: Int) throws -> PipelineValue {
        var entries: [NamedValue] = []
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == FieldNumber.MapValue.fields {
                entries.append(try entry(try reader.span(tag), depth: depth))
            } else {
                try reader.skip(tag)
            }
        }
        let literals = entries.compactMap { entry in entry.value.literal.map { (key: entry.name, value: $0) } }
        if literals.count == entries.count { return .literal(.map(OperandMap(literals))) }
        try PipelineParser.checkDistinct(entries)
        return .map(entries)
    }

    private static func checkDistinct(_ entries: [NamedValue]) throws(RequestError) {
        if entries.count < 2 { return }
        var names: Set<[UInt8]> = []
        for entry in entries where !names.insert(Array(entry.name.utf8)).inserted {
            throw .invalidArgument("A map of the pipeline has the key \"\(entry.name)\" twice.")
        }
    }

    private static func field(_ text: String) throws(RequestError) -> PipelineValue {
        switch text {
        case "__name__": .document(.name)
        case "__create_time__": .document(.createTime)
        case "__update_time__": .document(.updateTime)
        default: .field(try FieldPath(text))
        }
    }

    private mutating func count(_ depth: Int) throws(RequestError) {
        parts += 1
        if parts > PipelineLimits.parts {
            throw .invalidArgument("A pipeline may have at most \(PipelineLimits.parts) values and functions.")
        }
        if depth > PipelineLimits.depth {
            throw .invalidArgument("Values of a pipeline may be nested at most \(PipelineLimits.depth) levels deep.")
        }
    }
}
