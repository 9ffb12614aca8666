// Reading and writing transaction options. Field numbers: `google/firestore/v1/common.proto`.

extension TransactionOptions {
    /// Reads the message.
    ///
    /// - Parameter otherwise: what a message asks for that says nothing: a read-write transaction in `BeginTransaction`, a
    ///   read-only one where a read begins it.
    package init(wire: RawSpan, otherwise: TransactionOptions = .readWrite) throws(InvalidDocument) {
        self = otherwise
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 2: self = .readOnly(readTime: try TransactionOptions.readTime(try reader.span(tag)))
            case 3: self = try TransactionOptions.readWrite(try reader.span(tag))
            default: try reader.skip(tag)
            }
        }
    }

    private static func readTime(_ wire: RawSpan) throws(InvalidDocument) -> TimestampValue? {
        var time: TimestampValue?
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == 2 { time = try reader.timestamp(tag) } else { try reader.skip(tag) }
        }
        return time
    }

    private static func readWrite(_ wire: RawSpan) throws(InvalidDocument) -> TransactionOptions {
        var retry: [UInt8] = []
        var concurrency = ConcurrencyMode.unspecified
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: retry = try reader.byteArray(tag)
            // A mode of a later version is a wish that we do not know: the default serves.
            case 2: concurrency = ConcurrencyMode(rawNumber: try reader.int32(tag)) ?? .unspecified
            default: try reader.skip(tag)
            }
        }
        return .readWrite(retryTransaction: retry, concurrency: concurrency)
    }

    /// Appends the message's fields.
    package func encode(into writer: inout WireWriter) {
        switch self {
        case .readOnly(let readTime):
            writer.withLengthPrefix(field: 2) { writer in
                if let readTime { writer.appendField(2, timestamp: readTime) }
            }
        case .readWrite(let retryTransaction, let concurrency):
            writer.withLengthPrefix(field: 3) { writer in
                writer.writeIfSet(1, bytes: retryTransaction)
                writer.writeIfSet(2, int64: Int64(concurrency.rawValue))
            }
        }
    }
}
