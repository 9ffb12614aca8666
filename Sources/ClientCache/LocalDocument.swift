// A document as a client knows it.

import Basics
package import DocumentModel

/// A field whose value the server will set to the time of the commit, in a document with pending writes.
package struct PendingTimestamp: Sendable, Equatable {
    package var path: FieldPath
    /// The value before the pending writes; nil if the field was absent.
    package var previous: EncodedValue?

    package init(path: FieldPath, previous: EncodedValue?) {
        self.path = path
        self.previous = previous
    }
}

/// The contents of a cached document, pending writes included.
package struct LocalDocument: Sendable, Equatable {
    /// Canonical field entries.
    package var fields: [UInt8]
    /// Microseconds since 1970; 0 if the server has never acknowledged the document.
    package var createMicroseconds: UInt64
    /// The time of the last change that the server has acknowledged, in microseconds since 1970; 0 if there is none.
    package var updateMicroseconds: UInt64
    /// Whether the contents include writes that the server has not acknowledged.
    package var hasPendingWrites = false
    /// Whether the contents are an acknowledged write applied to an older cached document. What the server sends
    /// replaces them, also with the same update time.
    package var isProvisional = false
    /// Whether the contents are acknowledged merges alone, because the cache did not know the document that they have
    /// changed. Whatever the server sends replaces them.
    package internal(set) var isPartial = false
    /// The fields that contain the local time as an estimate.
    package var estimates: [PendingTimestamp] = []

    package init(fields: [UInt8], createMicroseconds: UInt64, updateMicroseconds: UInt64) {
        self.fields = fields
        self.createMicroseconds = createMicroseconds
        self.updateMicroseconds = updateMicroseconds
    }
}

/// What a client knows about a document.
package enum MaybeDocument: Sendable, Equatable {
    /// Nothing: the document is not in the cache.
    case unknown
    /// The document did not exist at this time, or a pending write deletes it.
    case missing(microseconds: UInt64, isProvisional: Bool)
    case found(LocalDocument)

    /// The document, if it exists.
    package var document: LocalDocument? {
        if case .found(let document) = self { document } else { nil }
    }

    /// The time of the server's information, in microseconds since 1970.
    var microseconds: UInt64 {
        switch self {
        case .unknown: 0
        case .missing(let microseconds, _): microseconds
        case .found(let document): document.updateMicroseconds
        }
    }

    /// Whether the cache lacks fields of the document, if it exists.
    var isIncomplete: Bool {
        switch self {
        case .unknown: true
        case .missing: false
        case .found(let document): document.isPartial
        }
    }

    var isProvisional: Bool {
        switch self {
        case .unknown: false
        case .missing(_, let isProvisional): isProvisional
        case .found(let document): document.isProvisional
        }
    }
}

/// What a pending server timestamp reads as.
package enum TimestampReading: Sendable {
    /// Null.
    case null
    /// The value before the pending writes, or null.
    case previous
    /// A value that queries order and compare as the SDK does: after all timestamps, by local time, and in the type
    /// class of no timestamp.
    case ordered
}

extension LocalDocument {
    /// The fields with the estimates replaced.
    ///
    /// - Returns: canonical field entries; the document's own if it has no estimates.
    package func fields(readingTimestampsAs reading: TimestampReading) -> [UInt8] {
        PendingTimestamp.fields(fields, estimates, readingTimestampsAs: reading)
    }
}

extension PendingTimestamp {
    /// The fields of a document with its estimates replaced.
    package static func fields(
        _ fields: [UInt8], _ estimates: [PendingTimestamp], readingTimestampsAs reading: TimestampReading
    ) -> [UInt8] {
        switch reading {
        case .null: setting(estimates, in: fields) { _ in .null }
        case .previous: setting(estimates, in: fields) { $0.previous ?? .null }
        case .ordered: replacing(estimates, in: fields) { ordered(at: $0) }
        }
    }

    /// The fields of a document that were read as ``TimestampReading/ordered``, with the local times again.
    static func estimated(_ fields: [UInt8], _ estimates: [PendingTimestamp]) -> [UInt8] {
        replacing(estimates, in: fields) { EncodedValue(.timestamp(localTime(of: $0))) }
    }

    private static func setting(
        _ estimates: [PendingTimestamp], in fields: [UInt8], _ value: (PendingTimestamp) -> EncodedValue
    ) -> [UInt8] {
        if estimates.isEmpty { return fields }
        return (try? FieldEdits.setting(estimates.map { ($0.path, value($0)) }, in: fields)) ?? fields
    }

    /// - Parameter new: returns the new value of a field that has a value.
    private static func replacing(
        _ estimates: [PendingTimestamp], in fields: [UInt8], _ new: (Value) -> EncodedValue
    ) -> [UInt8] {
        if estimates.isEmpty { return fields }
        let paths = estimates.map(\.path)
        let values = zip(paths, DocumentBytes.values(at: paths, in: fields)).compactMap { path, value in
            value.flatMap { try? Value(wire: $0.span) }.map { (path, Optional(new($0))) }
        }
        return (try? FieldEdits.setting(values, in: fields)) ?? fields
    }

    // A BSON timestamp is ordered between timestamps and strings, and has room for microseconds. It is never seen
    // outside of queries and of the cache's records.
    private static let key = "__request_timestamp__"
    private static let microsecondsPerSecond: Int64 = 1_000_000

    private static func ordered(at time: Value) -> EncodedValue {
        guard case .timestamp(let time) = time else { return EncodedValue(time) }
        let microseconds = max(0, time.microseconds)
        return EncodedValue(
            .map([
                key: .map([
                    "seconds": .integer(min(microseconds / microsecondsPerSecond, Int64(UInt32.max))),
                    "increment": .integer(microseconds % microsecondsPerSecond),
                ])
            ]))
    }

    private static func localTime(of value: Value) -> TimestampValue {
        switch value {
        case .timestamp(let time): return time
        case .map(let map):
            guard case .map(let parts)? = map[key], case .integer(let seconds)? = parts["seconds"],
                case .integer(let increment)? = parts["increment"]
            else { break }
            return TimestampValue(microseconds: seconds * microsecondsPerSecond + increment)
        default: break
        }
        return TimestampValue(microseconds: 0)
    }
}

extension FieldEdits {
    /// The fields of a document with some values set; nil removes a field.
    static func setting(
        _ values: some Sequence<(FieldPath, EncodedValue?)>, in fields: [UInt8]
    ) throws(InvalidDocument) -> [UInt8] {
        var bytes = ByteBuffer(capacity: 64)
        var edits: [FieldEdit] = []
        for (path, value) in values {
            let start = bytes.count
            if let value { bytes.append(value.span) }
            edits.append(FieldEdit(path: path, value: value == nil ? nil : start..<bytes.count))
        }
        var result = ByteBuffer(capacity: fields.count + bytes.count + 16)
        try FieldEdits(edits).apply(to: fields.byteSpan, values: bytes.bytes, into: &result)
        return result.copyBytes()
    }
}

extension DocumentBytes {
    /// The values of fields of a document in the order of the paths; nil where a field is absent.
    ///
    /// - Parameter fields: canonical field entries.
    static func values(at paths: [FieldPath], in fields: [UInt8]) -> [EncodedValue?] {
        let ranges = try? FieldRanges.locate(paths, in: fields.byteSpan)
        return ranges?.map { $0.map { EncodedValue(copying: fields.byteSpan.extracting($0)) } }
            ?? Array(repeating: nil, count: paths.count)
    }
}
