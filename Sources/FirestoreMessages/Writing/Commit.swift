// Commit: writes that are applied atomically.
//
// CommitRequest: 1 database, 2 writes*, 3 transaction. CommitResponse: 1 write_results*, 2 commit_time.

package import Basics
package import DocumentModel

/// A commit as received, lent.
package struct CommitRequestView: ~Escapable {
    private typealias Field = FieldNumber.CommitRequest

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
            case Field.database: database = try reader.span(tag)
            case Field.writes:
                _ = try reader.span(tag)
                writeCount += 1
            case Field.transaction: transaction = try reader.span(tag)
            default: try reader.skip(tag)
            }
        }
    }

    /// Lends the bytes of every `Write`, in order.
    package func forEachWrite(_ body: (RawSpan) throws -> Void) rethrows {
        try wire.forEachSubmessage(field: Field.writes, body)
    }
}

/// The answer to a commit.
package struct CommitResponse: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.CommitResponse

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
            case Field.writeResults: writeResults.append(try WriteResult(wire: try reader.span(tag)))
            case Field.commitTime: commitTime = try reader.timestamp(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        for result in writeResults { writer.withLengthPrefix(field: Field.writeResults) { result.encode(into: &$0) } }
        writer.appendField(Field.commitTime, timestamp: commitTime)
    }
}
