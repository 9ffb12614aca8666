// BatchWrite: writes that succeed or fail each on its own.
// BatchWriteRequest: 1 database, 2 writes*, 3 labels. BatchWriteResponse: 1 write_results*, 2 status*.

package import DocumentModel

/// A batch of independent writes to be sent.
package struct BatchWriteRequestMessage: Sendable {
    /// The writes and the database they belong to; no document may stand in it twice.
    package var writes: WriteList

    package init(writes: WriteList) {
        self.writes = writes
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(1, string: writes.database.description)
        writes.encode(field: 2, into: &writer)
    }
}

/// A batch of independent writes as received, lent.
package struct BatchWriteRequestView: ~Escapable {
    /// The database's name; not checked.
    package private(set) var database: RawSpan
    /// How many writes the batch has.
    package private(set) var writeCount = 0

    private let wire: RawSpan

    @_lifetime(copy wire)
    package init(_ wire: RawSpan) throws {
        self.wire = wire
        database = wire.extracting(first: 0)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: database = try reader.span(tag)
            case 2:
                _ = try reader.span(tag)
                writeCount += 1
            default: try reader.skip(tag)
            }
        }
    }

    /// Lends the bytes of every `Write`, in order.
    package func forEachWrite(_ body: (RawSpan) throws -> Void) rethrows {
        try wire.forEachSubmessage(field: 2, body)
    }
}

/// The answer to a batch of independent writes.
package struct BatchWriteResponse: FirestoreMessage, Equatable, Sendable {
    /// One for each write, in order; empty where the write failed.
    package var writeResults: [WriteResult]
    /// One for each write, in order.
    package var statuses: [StatusMessage]

    package init(writeResults: [WriteResult] = [], statuses: [StatusMessage] = []) {
        self.writeResults = writeResults
        self.statuses = statuses
    }

    package init(wire: RawSpan) throws {
        self.init()
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: writeResults.append(try WriteResult(wire: try reader.span(tag)))
            case 2: statuses.append(try StatusMessage(wire: try reader.span(tag)))
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        for result in writeResults { writer.withLengthPrefix(field: 1) { result.encode(into: &$0) } }
        for status in statuses { writer.withLengthPrefix(field: 2) { status.encode(into: &$0) } }
    }
}
