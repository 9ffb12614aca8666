// Applying one write to one document: pure, on wire bytes, without storage.
//
// The commit thread calls `apply` for each write of a request with the document as the writes before it left it, and
// stages what comes back. In order:
//
//   1. the precondition is judged against the stored document;
//   2. the update is applied: all fields, or the paths of the mask (`DocumentMerge`);
//   3. the transforms are applied, each seeing those before it (`TransformStep`);
//   4. a document that came out byte for byte as it was is no change: its update time stays.
//
// A plain set of a document costs one comparison with the stored bytes: the list validated it when the request was read
// and its bytes are stored as they are. Masks and transforms rewrite the document once into a buffer that is kept from
// write to write, and validate the result.

package import DocumentModel

/// A stored document, lent.
package struct StoredDocumentView: ~Escapable {
    /// Microseconds since 1970.
    package let createMicroseconds: UInt64
    /// Microseconds since 1970.
    package let updateMicroseconds: UInt64
    /// Canonical field entries.
    package let fields: RawSpan

    @inlinable
    @_lifetime(copy fields)
    package init(createMicroseconds: UInt64, updateMicroseconds: UInt64, fields: RawSpan) {
        self.createMicroseconds = createMicroseconds
        self.updateMicroseconds = updateMicroseconds
        self.fields = fields
    }
}

/// What a write does to the stored document, and what the client is told.
package struct WriteOutcome: Sendable, Equatable {
    package enum Effect: Sendable {
        /// The stored document stays as it is, or stays absent.
        case none
        /// The document is stored with `createMicroseconds`, the commit's time and `WriteApplication.newFields`.
        case put
        /// The stored document is removed.
        case delete
    }

    package let effect: Effect

    /// When the document came into being; meaningful for `.put`.
    package let createMicroseconds: UInt64

    /// The answer to the client.
    package let result: WriteResult
}

/// Applies writes to documents, one after the other, reusing its buffers.
///
/// Belongs to one thread at a time.
package struct WriteApplication: ~Copyable {
    /// The document that the last write with a mask or transforms made.
    private var merged = WireWriter()
    private var scratch = WireWriter()
    /// Whether the last `.put` stands in `merged` and not in its list.
    private var isMerged = false

    package init() {}

    /// Applies a write.
    ///
    /// - Parameters:
    ///   - current: the document as the writes before this one left it; nil if absent.
    ///   - commitMicroseconds: the time of the commit, later than every update time in the database.
    /// - Throws: `NOT_FOUND`, `ALREADY_EXISTS` or `FAILED_PRECONDITION` for a precondition that does not hold,
    ///   `INVALID_ARGUMENT` for a document that the write would make illegal.
    package mutating func apply(
        _ write: Write, of list: borrowing WriteList, to current: borrowing StoredDocumentView?,
        commitMicroseconds: UInt64
    ) throws(RequestError) -> WriteOutcome {
        preconditionFailure("declared only")
    }

    /// The fields to store after `apply` returned `.put`, lent until the next write.
    @_lifetime(borrow self, borrow list)
    package borrowing func newFields(of write: Write, in list: borrowing WriteList) -> RawSpan {
        isMerged ? merged.bytes : list.fields(of: write)
    }
}
