// Reading and writing transaction options. Field numbers: `google/firestore/v1/common.proto`.

package import Basics

extension TransactionOptions {
    private typealias Field = FieldNumber.TransactionOptions

    /// Reads the message.
    ///
    /// - Parameter otherwise: what a message asks for that says nothing: a read-write transaction in
    ///   `BeginTransaction`, a read-only one where a read begins it.
    package init(wire: RawSpan, otherwise: TransactionOptions = .readWrite) throws(InvalidDocument) {
        self = otherwise
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.readOnly: self = .readOnly(readTime: try TransactionOptions.readTime(try reader.span(tag)))
            case Field.readWrite: self = try TransactionOptions.readWrite(try reader.span(tag))
            default: try reader.skip(tag)
            }
        }
    }

    private static func readTime(_ wire: RawSpan) throws(InvalidDocument) -> TimestampValue? {
        var time: TimestampValue?
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == FieldNumber.TransactionOptions.ReadOnly.readTime {
                time = try reader.timestamp(tag)
            } else {
                try reader.skip(tag)
            }
        }
        return time
    }

    private static func readWrite(_ wire: RawSpan) throws(InvalidDocument) -> TransactionOptions {
        var retry: [UInt8] = []
        var concurrency = ConcurrencyMode.unspecified
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case FieldNumber.TransactionOptions.ReadWrite.retryTransaction: retry = try reader.byteArray(tag)
            // A mode of a later version is unknown: the default applies.
            case FieldNumber.TransactionOptions.ReadWrite.concurrencyMode:
                concurrency = ConcurrencyMode(rawNumber: try reader.int32(tag)) ?? .unspecified
            default: try reader.skip(tag)
            }
        }
        return .readWrite(retryTransaction: retry, concurrency: concurrency)
    }

    /// Appends the message's fields.
    package func encode(into writer: inout ByteBuffer) {
        switch self {
        case .readOnly(let readTime):
            writer.withLengthPrefix(field: Field.readOnly) { writer in
                if let readTime {
                    writer.appendField(FieldNumber.TransactionOptions.ReadOnly.readTime, timestamp: readTime)
                }
            }
        case .readWrite(let retryTransaction, let concurrency):
            writer.withLengthPrefix(field: Field.readWrite) { writer in
                writer.writeIfSet(FieldNumber.TransactionOptions.ReadWrite.retryTransaction, bytes: retryTransaction)
                writer.writeIfSet(
                    FieldNumber.TransactionOptions.ReadWrite.concurrencyMode, int64: Int64(concurrency.rawValue))
            }
        }
    }
}
