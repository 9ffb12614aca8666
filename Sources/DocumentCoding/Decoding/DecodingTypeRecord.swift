// What is special about a type for the decoder, found once per type and thread.

import Foundation

/// How the decoder makes values of a type.
enum DecodingTypeKind: UInt8 {
    /// By calling the type's `init(from:)`.
    case other
    case boolean, integer, int32, int64, double, float, string
    case date, data, url, decimal
    case timestamp, geoPoint, vector, reference
    /// Made of the document's reference, whatever is stored.
    case documentID
    /// An array, optional or string-keyed dictionary: through `DirectlyDecodable`.
    case direct
}

/// One per type and thread; never freed.
struct DecodingTypeRecord {
    let kind: DecodingTypeKind
    /// For `.direct`.
    let direct: (any DirectlyDecodable.Type)?
}

/// Types of the standard library whose contents are decoded without their own `init(from:)` and without a container.
protocol DirectlyDecodable {
    /// Makes a value of this very type: `T` is `Self`.
    ///
    /// - Parameter parent: the frame whose current key leads to the value.
    static func decode<T>(_ type: T.Type, _ value: ValueRange, _ session: DecodingSession, parent: Int) throws -> T
    /// Whether null entries of dictionaries with values of this type are dropped, as the SDK does.
    static var dropsNullEntries: Bool { get }
}

extension DecodingTypeKind {
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
            default: type is any AnyDocumentID.Type ? .documentID : .other
            }
    }
}

extension DecodingTypeRecord {
    var dropsNullEntries: Bool {
        switch kind {
        case .date, .data, .url, .decimal: true
        case .direct: direct?.dropsNullEntries ?? false
        default: false
        }
    }
}

extension DecodingSession {
    @inline(__always)
    func typeRecord<T>(_ type: T.Type) -> UnsafeMutablePointer<DecodingTypeRecord> {
        let address = unsafe metadataAddress(of: type)
        if let known = unsafe state.pointee.tables.pointee.typeRecords.find(address) {
            return unsafe known.assumingMemoryBound(to: DecodingTypeRecord.self)
        }
        return unsafe addTypeRecord(type)
    }

    @inline(never)
    private func addTypeRecord<T>(_ type: T.Type) -> UnsafeMutablePointer<DecodingTypeRecord> {
        let record = UnsafeMutablePointer<DecodingTypeRecord>.allocate(capacity: 1)
        let direct = type as? any DirectlyDecodable.Type
        unsafe record.initialize(
            to: DecodingTypeRecord(kind: direct == nil ? DecodingTypeKind(of: type) : .direct, direct: direct))
        unsafe state.pointee.tables.pointee.typeRecords.insert(metadataAddress(of: type), record)
        return unsafe record
    }
}
