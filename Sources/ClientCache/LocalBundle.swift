// What a client keeps of the bundles that it has loaded.

package import Basics
internal import DocumentModel

/// The contents of a bundle: documents and queries that a server has written into a file.
package struct LocalBundle: Sendable {
    /// Identifies the bundle together with the time.
    package let id: String
    /// When the bundle was made, in microseconds since 1970.
    package let createMicroseconds: UInt64
    /// The documents by their full resource names.
    package var documents: [UTF8Text: RemoteUpdate.Content] = [:]
    package var queries: [LocalNamedQuery] = []
    /// The results of its queries.
    package var results: [QueryResult] = []

    /// The documents that a query had at a time.
    package struct QueryResult: Sendable {
        /// The bytes that identify the query.
        let canonical: [UInt8]
        /// Microseconds since 1970.
        let readMicroseconds: UInt64
        /// Full resource names.
        let documents: [String]

        package init(canonical: [UInt8], readMicroseconds: UInt64, documents: [String]) {
            self.canonical = canonical
            self.readMicroseconds = readMicroseconds
            self.documents = documents
        }
    }

    package init(id: String, createMicroseconds: UInt64) {
        self.id = id
        self.createMicroseconds = createMicroseconds
    }

    /// The target that has the documents, so that they are collected as a whole. No query has these bytes.
    var canonical: [UInt8] { Array("__bundle__/docs/\(id)".utf8) }
}

/// A query that a bundle has given a name.
///
///     | read time, 8 | name length | name | contents ... |
package struct LocalNamedQuery: Sendable, Equatable {
    package let name: String
    /// The time of the query's documents in the bundle, in microseconds since 1970.
    package let readMicroseconds: UInt64
    /// The query as the owner of the store writes it.
    package let contents: [UInt8]

    package init(name: String, readMicroseconds: UInt64, contents: [UInt8]) {
        self.name = name
        self.readMicroseconds = readMicroseconds
        self.contents = contents
    }

    init(stored: RawSpan) throws(InvalidDocument) {
        var reader = WireReader(stored)
        readMicroseconds = try reader.fixed64()
        name = String(repairingUTF8: try reader.lengthDelimited())
        contents = [UInt8](copying: stored.extracting(reader.position..<stored.byteCount))
    }

    func encoded() -> [UInt8] {
        var writer = ByteBuffer(capacity: name.utf8.count + contents.count + 16)
        writer.append(littleEndian: readMicroseconds)
        writer.appendVarint(UInt64(name.utf8.count))
        writer.append(utf8: name)
        writer.append(contents)
        return writer.copyBytes()
    }
}
