// Commit: writes that apply all or nothing.
// CommitRequest: 1 database, 2 writes*, 3 transaction. CommitResponse: 1 write_results*, 2 commit_time.

package import DocumentModel

/// A commit to be sent.
package struct CommitRequestMessage: Sendable {
    /// The writes, in the order in which they apply, and the database they belong to.
    package var writes: WriteList
    /// The transaction that the commit ends; empty for none.
    package var transaction: [UInt8]

    package init(writes: WriteList, transaction: [UInt8] = []) {
        self.writes = writes
        self.transaction = transaction
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(1, string: writes.database.description)
        writes.encode(field: 2, into: &writer)
        writer.writeIfSet(3, bytes: transaction)
    }
}

/// A commit as received, lent.
package struct CommitRequestView: ~Escapable {
    /// The database's name; not checked.
    package private(set) var database: RawSpan
    /// Empty where the commit ends no transaction.
    package private(set) var transaction: RawSpan
    /// How many writes the commit has.
    package private(set) var writeCount = 0

    private let wire: RawSpan

    @_lifetime(copy wire)
    package init(_ wire: RawSpan) throws {
        self.wire = wire
        database = wire.extracting(first: 0)
        transaction = database
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: database = try reader.span(tag)
            case 2:
                _ = try reader.span(tag)
                writeCount += 1
            case 3: transaction = try reader.span(tag)
            default: try reader.skip(tag)
            }
        }
    }

    /// Lends the bytes of every `Write`, in order.
    package func forEachWrite(_ body: (RawSpan) throws -> Void) rethrows {
        try wire.forEachSubmessage(field: 2, body)
    }
}

/// The answer to a commit.
package struct CommitResponse: FirestoreMessage, Equatable, Sendable {
    /// One for each write, in order.
    package var writeResults: [WriteResult]
    package var commitTime: TimestampValue

    package init(writeResults: [WriteResult], commitTime: TimestampValue) {
        self.writeResults = writeResults
        self.commitTime = commitTime
    }

    package init(wire: RawSpan) throws {
        self.init(writeResults: [], commitTime: TimestampValue(seconds: 0, nanoseconds: 0))
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: writeResults.append(try WriteResult(wire: try reader.span(tag)))
            case 2: commitTime = try reader.timestamp(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        for result in writeResults { writer.withLengthPrefix(field: 1) { result.encode(into: &$0) } }
        writer.appendField(2, timestamp: commitTime)
    }
}
