// What a document was before it is written.

internal import Basics
internal import DocumentModel
internal import Storage
internal import StorageEngines
internal import StoreFormat
internal import WriteEngine

/// A document as it was before a write: a copy, because staging may move what is stored.
struct PriorDocument: ~Copyable {
    private(set) var exists = false
    private(set) var createMicroseconds: UInt64 = 0
    private(set) var updateMicroseconds: UInt64 = 0
    private var buffer = ByteBuffer(capacity: 1024)

    /// Memory kept for the next document: the largest one fits.
    private static let keptBytes = 1 << 20

    init() {}

    /// Canonical field entries; empty if the document does not exist.
    var fields: RawSpan { @_lifetime(borrow self) borrowing get { buffer.bytes } }

    /// The document as a write sees it; nil if it does not exist.
    var view: StoredDocumentView? {
        @_lifetime(borrow self) borrowing get {
            guard exists else { return nil }
            return StoredDocumentView(
                createMicroseconds: createMicroseconds, updateMicroseconds: updateMicroseconds, fields: buffer.bytes)
        }
    }

    /// There is no document.
    mutating func clear() {
        exists = false
        buffer.reset(keeping: PriorDocument.keptBytes)
    }

    /// Takes the newest state of a document.
    /// - Throws: `corrupt` if its record is damaged.
    mutating func read(_ location: borrowing DocumentLocation, latest: LatestReader) throws(StorageError) {
        clear()
        guard let stored = try latest.value(forKey: location.key) else { return }
        guard let document = StoredRecordView(stored.bytes, versionMicroseconds: stored.version.microseconds) else {
            throw StorageError(.corrupt, "a document's record is damaged")
        }
        exists = true
        createMicroseconds = document.createMicroseconds
        updateMicroseconds = document.updateMicroseconds
        buffer.append(document.fields)
    }

    /// Takes the fields that an earlier item of the same record has left; recovery, where only the fields count.
    mutating func take(fields: RawSpan) {
        clear()
        exists = true
        buffer.append(fields)
    }
}
