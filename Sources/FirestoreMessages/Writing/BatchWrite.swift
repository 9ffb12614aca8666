// BatchWrite: writes that succeed or fail independently.
//
// BatchWriteRequest: 1 database, 2 writes*, 3 labels. BatchWriteResponse: 1 write_results*, 2 status*.

package import Basics
package import DocumentModel

/// A batch of independent writes as received, lent.
package struct BatchWriteRequestView: ~Escapable {
    private typealias Field = FieldNumber.BatchWriteRequest

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
            case Field.database: database = try reader.span(tag)
            case Field.writes:
                _ = try reader.span(tag)
                writeCount += 1
            default: try reader.skip(tag)
            }
        }
    }

    /// Lends the bytes of every `Write`, in order.
    package func forEachWrite(_ body: (RawSpan) throws -> Void) rethrows {
        try wire.forEachSubmessage(field: Field.writes, body)
    }
}

/// The answer to a batch of independent writes.
package struct BatchWriteResponse: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.BatchWriteResponse

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
            case Field.writeResults: writeResults.append(try WriteResult(wire: try reader.span(tag)))
            case Field.status: statuses.append(try StatusMessage(wire: try reader.span(tag)))
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        for result in writeResults { writer.withLengthPrefix(field: Field.writeResults) { result.encode(into: &$0) } }
        for status in statuses { writer.withLengthPrefix(field: Field.status) { status.encode(into: &$0) } }
    }
}
