import Basics
import ClientCache
import DocumentModel
import HearthClient

/// The content of a document as a program sees it: what the server sent, with the writes that wait in the cache.
struct VisibleDocument: Sendable, Equatable {
    /// The `fields` entries of the Document message, as received.
    var fields: [UInt8]
    var createTime: TimestampValue
    var updateTime: TimestampValue
    /// Whether the contents include writes that the server has not acknowledged.
    var hasPendingWrites = false
    /// Whether the contents are those of an acknowledged write that the server has not sent yet.
    var isProvisional = false
    /// Fields with the local time in place of a server timestamp that is not known yet.
    var estimates: [PendingTimestamp] = []

    init(_ document: StoredDocument) {
        fields = document.fields
        createTime = document.createTime
        updateTime = document.updateTime
    }

    init(_ document: LocalDocument) {
        fields = document.fields
        createTime = TimestampValue(microseconds: Int64(clamping: document.createMicroseconds))
        updateTime = TimestampValue(microseconds: Int64(clamping: document.updateMicroseconds))
        hasPendingWrites = document.hasPendingWrites
        isProvisional = document.isProvisional
        estimates = document.estimates
    }

    /// The bytes of the field's `Value` message, or `nil` if the document has no such field.
    func encodedValue(at path: DocumentModel.FieldPath) -> EncodedValue? {
        guard let value = DocumentBytes.value(at: path, in: fields.span.bytes) else { return nil }
        return EncodedValue(canonical: [UInt8](copying: value))
    }

    /// The fields with pending server timestamps as a program wants them.
    func fields(with behavior: ServerTimestampBehavior) -> [UInt8] {
        if estimates.isEmpty { return fields }
        switch behavior {
        case .estimate: return fields
        case .none: return PendingTimestamp.fields(fields, estimates, readingTimestampsAs: .null)
        case .previous: return PendingTimestamp.fields(fields, estimates, readingTimestampsAs: .previous)
        }
    }

    /// The fields as queries order and compare them.
    var queryFields: [UInt8] { PendingTimestamp.fields(fields, estimates, readingTimestampsAs: .ordered) }

    /// Whether the field, or a field inside it, is a server timestamp that is not known yet.
    func hasEstimate(at path: DocumentModel.FieldPath) -> Bool { estimates.contains { path.isPrefix(of: $0.path) } }

    /// Whether the program sees the same in both. As in the SDK, the values before pending server timestamps do not
    /// count: they change when the server sends the write before it acknowledges it.
    func looksLike(_ other: VisibleDocument) -> Bool {
        fields == other.fields && estimates.lazy.map(\.path).elementsEqual(other.estimates.lazy.map(\.path))
    }
}

extension BatchGetReply {
    /// What the cache stores of the documents.
    var remoteUpdates: [RemoteUpdate] {
        let read = readTime.map { UInt64(clamping: $0.microseconds) }
        return results.map { name, content in
            RemoteUpdate(
                name: name, content: content?.remoteContent ?? .missing(readMicroseconds: read),
                readMicroseconds: read)
        }
    }
}

extension StoredDocument {
    /// What the cache stores of the document.
    var remoteContent: RemoteUpdate.Content {
        .found(
            fields: fields, createMicroseconds: UInt64(clamping: createTime.microseconds),
            updateMicroseconds: UInt64(clamping: updateTime.microseconds))
    }
}
