// Write: a stream of commits, each acknowledged in order.
//
// WriteRequest: 1 database, 2 stream_id, 3 writes*, 4 stream_token, 5 labels. WriteResponse: 1 stream_id, 2
// stream_token, 3 write_results*, 4 commit_time.

package import Basics
package import DocumentModel

/// A message of the client's side as received, lent.
package struct WriteRequestView: ~Escapable {
    private typealias Field = FieldNumber.WriteRequest

    /// The database's name; not checked.
    package private(set) var database: RawSpan
    /// The stream to take up again; empty for a new one.
    package private(set) var streamID: RawSpan
    /// The last token that the client has received.
    package private(set) var streamToken: RawSpan
    /// How many writes the message has.
    package private(set) var writeCount = 0

    private let wire: RawSpan

    @_lifetime(copy wire)
    package init(_ wire: RawSpan) throws {
        self.wire = wire
        database = wire.extracting(first: 0)
        streamID = database
        streamToken = database
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.database: database = try reader.span(tag)
            case Field.streamId: streamID = try reader.span(tag)
            case Field.writes:
                _ = try reader.span(tag)
                writeCount += 1
            case Field.streamToken: streamToken = try reader.span(tag)
            default: try reader.skip(tag)
            }
        }
    }

    /// Lends the bytes of every `Write`, in order.
    package func forEachWrite(_ body: (RawSpan) throws -> Void) rethrows {
        try wire.forEachSubmessage(field: Field.writes, body)
    }
}

/// A message of the server's side.
package struct WriteResponse: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.WriteResponse

    /// In the first message of a new stream: its name.
    package var streamID: String
    /// Stands for everything answered so far.
    package var streamToken: [UInt8]
    /// One for each write, in order.
    package var writeResults: [WriteResult]
    /// Nil where nothing was committed.
    package var commitTime: TimestampValue?

    package init(
        streamID: String = "", streamToken: [UInt8] = [], writeResults: [WriteResult] = [],
        commitTime: TimestampValue? = nil
    ) {
        self.streamID = streamID
        self.streamToken = streamToken
        self.writeResults = writeResults
        self.commitTime = commitTime
    }

    package init(wire: RawSpan) throws {
        self.init()
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.streamId: streamID = try reader.string(tag)
            case Field.streamToken: streamToken = try reader.byteArray(tag)
            case Field.writeResults: writeResults.append(try WriteResult(wire: try reader.span(tag)))
            case Field.commitTime: commitTime = try reader.timestamp(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.writeIfSet(Field.streamId, string: streamID)
        writer.writeIfSet(Field.streamToken, bytes: streamToken)
        for result in writeResults { writer.withLengthPrefix(field: Field.writeResults) { result.encode(into: &$0) } }
        if let commitTime { writer.appendField(Field.commitTime, timestamp: commitTime) }
    }
}
