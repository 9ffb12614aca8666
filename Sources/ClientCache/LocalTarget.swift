// What a client keeps about a query between two runs of the program.

package import Basics
internal import DocumentModel

/// A query that was listened to.
///
///     | id, 4 | last used, 4 | snapshot, 8 | token length | token | canonical query ... |
package struct LocalTarget: Sendable, Equatable {
    /// The bytes of the query, which identify the target.
    package let canonical: [UInt8]
    /// The number of the target in this store.
    package let id: UInt32
    /// The number of the target's last use: see ``LocalUses``.
    var lastUsed: UInt32
    /// The time of the last snapshot in microseconds since 1970; 0 before the first.
    package var snapshotMicroseconds: UInt64 = 0
    /// Continues from the last snapshot; empty before the first.
    package var token: [UInt8] = []

    /// Bytes of the key and the record, which has the query too, with 40 for the token.
    var byteCount: Int { LocalKey.target(canonical).count + canonical.count + 60 }

    /// Whether the store has a whole result of the query.
    package var hasResult: Bool { !token.isEmpty }

    /// Whether a listener can continue from an earlier state: of the server, or of a bundle.
    package var hasSnapshot: Bool { hasResult || snapshotMicroseconds > 0 }

    init(canonical: [UInt8], id: UInt32, lastUsed: UInt32) {
        self.canonical = canonical
        self.id = id
        self.lastUsed = lastUsed
    }

    init(stored: RawSpan) throws(RequestError) {
        do throws(InvalidDocument) {
            var reader = WireReader(stored)
            let (id, lastUsed) = (try reader.fixed32(), try reader.fixed32())
            let snapshot = try reader.fixed64()
            let token = [UInt8](copying: try reader.lengthDelimited())
            self.init(
                canonical: [UInt8](copying: stored.extracting(reader.position..<stored.byteCount)), id: id,
                lastUsed: lastUsed)
            snapshotMicroseconds = snapshot
            self.token = token
        } catch {
            throw RequestError(.dataLoss, "A query in the cache is damaged.")
        }
    }

    func encoded() -> [UInt8] {
        var writer = ByteBuffer(capacity: canonical.count + token.count + 32)
        writer.append(littleEndian: id)
        writer.append(littleEndian: lastUsed)
        writer.append(littleEndian: snapshotMicroseconds)
        writer.appendVarint(UInt64(token.count))
        writer.append(token)
        writer.append(canonical)
        return writer.copyBytes()
    }
}

/// The documents of a target as of its last snapshot.
package struct TargetDocuments: Sendable, Equatable {
    /// The update times in microseconds by the names; 0 for a document that the server has to send again.
    package var times: [UTF8Text: UInt64] = [:]
    /// Whether the store has all of them. The server does not send a document again that has not changed: a listener
    /// cannot continue from the snapshot then.
    package var isComplete = true

    package init() {}
}

/// What the server has sent for a target.
package struct TargetUpdate: Sendable {
    package var id: UInt32
    /// Names of documents that are in the target.
    package var added: [String] = []
    /// Names of documents that are not in the target any more.
    package var removed: [String] = []
    package var token: [UInt8]
    package var snapshotMicroseconds: UInt64

    package init(id: UInt32, token: [UInt8], snapshotMicroseconds: UInt64) {
        self.id = id
        self.token = token
        self.snapshotMicroseconds = snapshotMicroseconds
    }
}

/// What the server has sent about a document.
package struct RemoteUpdate: Sendable {
    package enum Content: Sendable {
        case found(fields: [UInt8], createMicroseconds: UInt64, updateMicroseconds: UInt64)
        /// The document did not exist at this time; nil if the time is not known.
        case missing(readMicroseconds: UInt64?)
    }

    /// The full resource name.
    package var name: String
    package var content: Content
    /// When the server had the document so; nil if that is not known.
    package var readMicroseconds: UInt64?

    package init(name: String, content: Content, readMicroseconds: UInt64? = nil) {
        self.name = name
        self.content = content
        self.readMicroseconds = readMicroseconds
    }

    /// About how many bytes the document has in the store.
    var byteCount: Int {
        if case .found(let fields, _, _) = content { name.utf8.count + fields.count } else { name.utf8.count }
    }
}

/// A document that has changed for the program.
package struct LocalChange: Sendable, Equatable {
    /// The full resource name.
    package var name: String
    package var state: MaybeDocument
}
