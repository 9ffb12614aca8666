// Which state of the database a read sees: the `consistency_selector` that every reading request carries.

import Basics
package import DocumentModel

/// The oneof of reading requests that picks a state of the database.
package enum ReadConsistency: Equatable, Sendable {
    /// The newest state; no field is sent.
    case latest
    /// The snapshot of a transaction, which also records what it read.
    case transaction([UInt8])
    /// A transaction that begins with this read; its id comes with the first answer.
    case newTransaction(TransactionOptions)
    /// The state as of a past time.
    case readTime(TimestampValue)

    /// The field numbers of the oneof, which differ from request to request; -1 where a request lacks the member.
    struct Fields {
        let transaction: Int
        let newTransaction: Int
        let readTime: Int

        init(transaction: Int?, newTransaction: Int?, readTime: Int) {
            self.transaction = transaction ?? -1
            self.newTransaction = newTransaction ?? -1
            self.readTime = readTime
        }
    }

    /// Takes the field if it belongs to the oneof; the last one sent wins.
    ///
    /// Not inlined: the optimiser of Swift 6.3.1 crashes on some callers (ownership error in copy propagation).
    ///
    /// - Returns: whether the field was one of the oneof's and has been read.
    @inline(never)
    mutating func read(_ tag: WireTag, from reader: inout WireReader, _ fields: Fields) throws -> Bool {
        switch tag.fieldNumber {
        case fields.transaction:
            // An empty id names no transaction; the server refuses it.
            self = .transaction(try reader.byteArray(tag))
        case fields.newTransaction:
            self = .newTransaction(
                try TransactionOptions(wire: try reader.span(tag), otherwise: .readOnly(readTime: nil)))
        case fields.readTime:
            self = .readTime(try reader.timestamp(tag))
        default:
            return false
        }
        return true
    }

    func encode(into writer: inout ByteBuffer, _ fields: Fields) {
        switch self {
        case .latest: break
        case .transaction(let id): writer.appendField(fields.transaction, bytes: id)
        case .newTransaction(let options):
            writer.withLengthPrefix(field: fields.newTransaction) { options.encode(into: &$0) }
        case .readTime(let time): writer.appendField(fields.readTime, timestamp: time)
        }
    }
}
