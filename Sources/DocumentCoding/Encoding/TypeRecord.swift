// What is special about a type for the encoder, found once per type and thread.

import Foundation

/// How the encoder treats values of a type.
enum TypeKind: UInt8 {
    /// By calling the value's `encode(to:)`.
    case other
    case boolean, integer, int32, int64, double, float, string
    case date, data, url, decimal
    case timestamp, geoPoint, vector, reference, fieldValue
    /// Never encoded.
    case documentID
    /// An array, optional or string-keyed dictionary: through `DirectlyEncodable`.
    case direct
}

/// One per type and thread; never freed.
struct TypeRecord {
    let kind: TypeKind
    /// For `.direct`.
    let direct: (any DirectlyEncodable.Type)?
}

/// Types of the standard library whose contents are reached without their own `encode(to:)` and without a container.
protocol DirectlyEncodable {
    /// Writes a value, which is of this very type: `T` is `Self`.
    ///
    /// - Returns: false when it was a sentinel and leaves nothing.
    static func encode<T>(_ value: T, into session: EncodingSession) throws -> Bool
}

/// A `DocumentID` of whatever type.
protocol AnyDocumentID {}
extension DocumentID: AnyDocumentID {}

extension EncodingSession {
    @inline(__always)
    func typeRecord<T>(_ type: T.Type) -> UnsafeMutablePointer<TypeRecord> {
        let address = unsafe metadataAddress(of: type)
        if let known = unsafe state.pointee.tables.pointee.typeRecords.find(address) {
            return unsafe known.assumingMemoryBound(to: TypeRecord.self)
        }
        return unsafe addTypeRecord(type)
    }

    @inline(never)
    private func addTypeRecord<T>(_ type: T.Type) -> UnsafeMutablePointer<TypeRecord> {
        let record = UnsafeMutablePointer<TypeRecord>.allocate(capacity: 1)
        let direct = type as? any DirectlyEncodable.Type
        unsafe record.initialize(to: TypeRecord(kind: direct == nil ? TypeKind(of: type) : .direct, direct: direct))
        unsafe state.pointee.tables.pointee.typeRecords.insert(metadataAddress(of: type), record)
        return unsafe record
    }
}

extension TypeKind {
    init<T>(of type: T.Type) {
        self =
            switch ObjectIdentifier(type) {
            case ObjectIdentifier(Bool.self): .boolean
            case ObjectIdentifier(Int.self): .integer
            case ObjectIdentifier(Int32.self): .int32
            case ObjectIdentifier(Int64.self): .int64
            case ObjectIdentifier(Double.self): .double
            case ObjectIdentifier(Float.self): .float
            case ObjectIdentifier(String.self): .string
            case ObjectIdentifier(Date.self): .date
            case ObjectIdentifier(Data.self): .data
            case ObjectIdentifier(URL.self): .url
            case ObjectIdentifier(Decimal.self): .decimal
            case ObjectIdentifier(Timestamp.self): .timestamp
            case ObjectIdentifier(GeoPoint.self): .geoPoint
            case ObjectIdentifier(VectorValue.self): .vector
            case ObjectIdentifier(DocumentReference.self): .reference
            case ObjectIdentifier(FieldValue.self): .fieldValue
            default: type is any AnyDocumentID.Type ? .documentID : .other
            }
    }
}
