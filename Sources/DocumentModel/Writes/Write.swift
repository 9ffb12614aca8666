/// One write of a commit (`google.firestore.v1.Write`): set, update, delete or verify one document.
///
/// A `Write` owns no document bytes. Its name and fields are ranges of the ``WriteList`` that contains it, so a plain
/// set costs one copy of the request's bytes on its way from the socket to the log.
package struct Write: Sendable {
    /// The four members of the wire's `operation`.
    package enum Kind: UInt8, Sendable {
        /// Set the document, or with a mask some of its fields; creates it if absent.
        case update = 1
        /// Remove the document; an absent one is fine.
        case delete = 2
        /// Change nothing, but insist on the precondition. Sent by mobile clients' transactions.
        case verify = 5
        /// Apply the transforms to the document as it is; creates it if absent.
        case transform = 6
    }

    package let kind: Kind

    /// The document's full resource name, as UTF-8 bytes of the list.
    package let name: Range<Int>

    /// The document's canonical field entries, as bytes of the list; empty unless `kind` is `.update`.
    package let fields: Range<Int>

    /// The paths to change; nil replaces the whole document. Present and empty differs from absent.
    package let mask: DocumentMask?

    /// What must hold of the stored document.
    package let precondition: Precondition?

    /// Changes computed by the server, applied after the update, in order, each seeing those before it.
    package let transforms: [FieldTransform]

    @usableFromInline
    init(
        kind: Kind, name: Range<Int>, fields: Range<Int>, mask: DocumentMask?, precondition: Precondition?,
        transforms: [FieldTransform]
    ) {
        self.kind = kind
        self.name = name
        self.fields = fields
        self.mask = mask
        self.precondition = precondition
        self.transforms = transforms
    }
}

/// A set of field paths: what an update changes or a read returns.
package struct DocumentMask: Sendable, Equatable {
    package var paths: [FieldPath]

    package init(paths: [FieldPath]) {
        self.paths = paths
    }
}

/// A condition on the stored document, without which a write fails.
package enum Precondition: Sendable, Equatable {
    /// The document must exist, or must not.
    case exists(Bool)

    /// The document must exist and have been changed last at this time, to the microsecond.
    case updateTime(TimestampValue)
}
