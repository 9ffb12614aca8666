// Where a document is stored.

internal import Basics
internal import DocumentModel
internal import StoreFormat

/// A document's key and where its parts lie, in a buffer that is kept.
struct DocumentLocation: ~Copyable {
    private var buffer = ByteBuffer(capacity: KeyLayout.keyBytesMax)
    private(set) var parts = DocumentKey.Parts(collectionByteCount: 0, isCut: false)

    init() {}

    /// Goes to the document at a relative path.
    mutating func locate(_ path: RawSpan, database: UInt32) {
        parts = DocumentKey.write(path, database: database, into: &buffer)
    }

    var key: RawSpan { @_lifetime(borrow self) borrowing get { buffer.bytes } }

    /// The key up to and including the collection path.
    var collection: RawSpan {
        @_lifetime(borrow self) borrowing get { buffer.bytes.extracting(0..<parts.collectionByteCount) }
    }
}
