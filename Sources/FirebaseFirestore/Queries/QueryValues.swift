import Basics
import DocumentCoding
import DocumentModel

/// The operands of queries as wire bytes.
enum QueryValues {
    /// Operands that are tested for by a filter on the field alone.
    enum Special: Equatable {
        case null
        case notANumber
    }

    /// A value of a program; sentinels, other databases' references and the like are programming errors.
    ///
    /// - Parameter allowsNestedArrays: whether arrays may stand directly in arrays.
    static func encode(
        _ value: Any, firestore: Firestore, allowsNestedArrays: Bool = false
    ) throws(RuleViolation) -> EncodedValue {
        do {
            return EncodedValue(
                canonical: try DocumentFields.value(
                    value, database: Substring(firestore.databaseName.description),
                    allowsNestedArrays: allowsNestedArrays))
        } catch {
            throw RuleViolation(error.message)
        }
    }

    /// Whether the value is null or NaN.
    static func special(_ value: EncodedValue) -> Special? {
        guard let parsed = WireValue(value.bytes.span.bytes) else { return nil }
        switch parsed.tag {
        case ValueTag.null: return .null
        case ValueTag.double: return Double(bitPattern: parsed.bits).isNaN ? .notANumber : nil
        default: return nil
        }
    }

    /// A reference to a document by its resource name.
    static func reference(_ name: String) -> EncodedValue {
        var writer = ByteBuffer(capacity: name.utf8.count + 16)
        writer.appendField(FieldNumber.Value.referenceValue, string: name)
        return EncodedValue(canonical: writer.copyBytes())
    }

    /// An array of values.
    static func array(_ elements: [EncodedValue]) -> EncodedValue {
        var writer = ByteBuffer()
        writer.withLengthPrefix(field: FieldNumber.Value.arrayValue) { writer in
            for element in elements { writer.appendField(FieldNumber.ArrayValue.values, bytes: element.bytes) }
        }
        return EncodedValue(canonical: writer.copyBytes())
    }
}
