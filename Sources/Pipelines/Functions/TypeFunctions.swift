// Types, sizes, and the parts of document names.

internal import Basics
internal import DocumentModel
internal import Expressions

enum TypeFunctions {
    static let all: [PipelineFunction] = [
        PipelineFunction("type", 1, .total(type)),
        PipelineFunction("is_type", 2, .total(isType)),
        PipelineFunction("storage_size", 1, .strict(storageSize)),
        PipelineFunction("document_id", 1, .strict(documentID)),
        PipelineFunction("collection_id", 1, .strict(collectionID)),
        PipelineFunction("parent", 1, .strict(parent)),
        PipelineFunction("current_timestamp", 0, .total(currentTimestamp)),
        PipelineFunction("current_document", 0, .form(currentDocument)),
    ]

    /// The name of an operand's type; nil for absent.
    static func name(of operand: Operand) -> String? {
        switch operand {
        case .absent: return nil
        case .null: return "null"
        case .boolean: return "boolean"
        case .integer: return "int64"
        case .double: return "float64"
        case .timestamp: return "timestamp"
        case .string: return "string"
        case .bytes: return "bytes"
        case .reference: return "reference"
        case .geoPoint: return "geo_point"
        case .list, .encodedList: return "array"
        case .map, .encodedMap, .object:
            guard let bytes = try? operand.wireBytes(), let value = WireValue(bytes.byteSpan) else { return "map" }
            return name(ofMap: value.typeClass)
        }
    }

    /// Vectors and the values of BSON are maps with reserved keys.
    private static func name(ofMap typeClass: TypeClass) -> String {
        switch typeClass {
        case .vector: "vector"
        case .minKey: "min_key"
        case .maxKey: "max_key"
        case .bsonTimestamp: "request_timestamp"
        case .binary: "bson_binary"
        case .objectID: "object_id"
        case .regex: "regex"
        default: "map"
        }
    }

    private static let names: Set<String> = [
        "null", "boolean", "int64", "float64", "number", "int32", "decimal128", "timestamp", "string", "bytes",
        "reference", "geo_point", "array", "map", "vector", "min_key", "max_key", "request_timestamp", "bson_binary",
        "object_id", "regex",
    ]

    /// The name of an operand's type; nil for absent. Pays for it.
    private static func name(_ operand: Operand, _ evaluation: Evaluation) throws(ExpressionError) -> String? {
        // A map is encoded to see whether it is one of the values that have the form of maps.
        if operand.types == .map { try evaluation.spendWork(2 * operand.deepMemoryBytes) }
        return name(of: operand)
    }

    private static func type(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try name(operands[0], evaluation).map { .string($0) } ?? .absent
    }

    private static func isType(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        guard case .string(let wanted) = operands[1] else {
            throw .mismatch("is_type", "the name of a type", operands[1])
        }
        guard names.contains(wanted) else { throw .failed("is_type: there is no type \"\(wanted)\"") }
        guard let name = try name(operands[0], evaluation) else { return .boolean(false) }
        return .boolean(name == wanted || wanted == "number" && operands[0].number != nil)
    }

    /// Bytes by the rules of stored values.
    private static func storageSize(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand
    {
        let bytes = try operands[0].wireBytes()
        try evaluation.spendMemory(bytes.count)
        guard let result = try? DocumentValidator.validate(value: bytes.byteSpan, rules: .query) else {
            throw .failed("storage_size: the value cannot be stored")
        }
        return .integer(Int64(result.size))
    }

    private static func documentID(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .string(try segment("document_id", operands[0], fromEnd: 1))
    }

    private static func collectionID(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand
    {
        .string(try segment("collection_id", operands[0], fromEnd: 2))
    }

    /// The document that a document lies below; null for one of a collection at the root.
    private static func parent(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        guard case .reference(let text) = operands[0] else { throw .mismatch("parent", "a reference", operands[0]) }
        let segments = text.slashSeparated
        guard segments.count >= 7 else { throw .failed("parent: the reference does not name a document") }
        // projects/P/databases/D/documents, then pairs of a collection and an id.
        return segments.count < 9 ? .null : .reference(segments.dropLast(2).joined(separator: "/"))
    }

    private static func segment(
        _ name: String, _ operand: Operand, fromEnd position: Int
    ) throws(ExpressionError) -> String {
        guard case .reference(let text) = operand else { throw .mismatch(name, "a reference", operand) }
        let segments = text.slashSeparated
        guard segments.count >= position else { throw .failed("\(name): the reference does not name a document") }
        return segments[segments.count - position]
    }

    /// The fields of the row, as a map.
    private static func currentDocument(_ evaluation: Evaluation, _: [ExpressionID]) throws(ExpressionError) -> Operand
    {
        let fields = RowHost.of(evaluation).row.fields
        try evaluation.spendMemory(fields.flatBytes)
        return fields
    }

    private static func currentTimestamp(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        .timestamp(TimestampValue(microseconds: Int64(clamping: SystemClock.microseconds())))
    }
}
