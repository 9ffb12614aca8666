// Requests that write, from a list of writes: commits and batches through the shipped writer.

package import Basics
package import DocumentModel
package import FirestoreMessages

extension CommitWrites {
    /// The writes of a list; a list with a `transform`, which no client sends any more, is a mistake of the test.
    package init(_ list: WriteList) {
        self.init(database: list.database)
        for write in list.writes {
            let name = String(repairingUTF8: list.name(of: write))
            switch write.kind {
            case .update:
                set(
                    name, fields: list.fields(of: write), mask: write.mask?.paths.map(\.description),
                    precondition: write.precondition, transforms: write.transforms.map(EncodedTransform.init))
            case .delete: delete(name, precondition: write.precondition)
            case .verify: verify(name, precondition: write.precondition ?? .exists(true))
            case .transform: preconditionFailure("CommitWrites has no transform writes")
            }
        }
    }
}

extension EncodedTransform {
    /// A transform as the client's encoder would hand it over.
    package init(_ transform: FieldTransform) {
        var whole = ByteBuffer()
        transform.encode(into: &whole)
        // The message begins with its path; what follows is the operation.
        var reader = WireReader(whole.bytes)
        guard let tag = try? reader.nextTag(),
            tag.fieldNumber == FieldNumber.DocumentTransform.FieldTransform.fieldPath, (try? reader.skip(tag)) != nil
        else { preconditionFailure("a field transform is written path first") }
        let operation = whole.bytes.extracting(droppingFirst: reader.position)
        self.init(path: transform.path.description, operation: [UInt8](copying: operation))
    }
}

/// A `WriteRequest`. Only mobile SDKs send it, so that nothing of ours writes it outside of tests.
package struct WriteRequestMessage: Sendable {
    /// Wanted in the first message.
    package var database: String
    /// In the first message: the stream to take up again; empty for a new one.
    package var streamID: String
    /// None in the first message.
    package var writes: WriteList?
    /// The last token that was received; empty in the first message of a new stream.
    package var streamToken: [UInt8]

    package init(database: String = "", streamID: String = "", writes: WriteList? = nil, streamToken: [UInt8] = []) {
        self.database = database
        self.streamID = streamID
        self.writes = writes
        self.streamToken = streamToken
    }

    package func encode(into writer: inout ByteBuffer) {
        typealias Field = FieldNumber.WriteRequest
        writer.writeIfSet(Field.database, string: database)
        writer.writeIfSet(Field.streamId, string: streamID)
        writes?.encode(field: Field.writes, into: &writer)
        writer.writeIfSet(Field.streamToken, bytes: streamToken)
    }
}
