// Which state of which database a read sees.

package import DocumentModel
package import Storage

/// What a request says about the state it wants to read: the `consistency_selector` of the messages.
package enum ReadSelector: Sendable {
    /// Everything acknowledged so far.
    case latest
    /// The state at this time, within the retention.
    case time(TimestampValue)
    /// The snapshot of this transaction, which will remember what is read.
    case transaction(TransactionIdentifier)
}

/// One database at one version: every read through it sees the same state, for as long as the retention reaches back.
///
/// A plain value: it holds no resources and may be kept between the pages of a streaming answer and moved between
/// threads. `StoreReader.readPoint(_:in:)` makes one.
package struct ReadPoint: Sendable {
    /// The database's full name, `projects/{p}/databases/{d}`.
    package let database: DatabaseName

    /// The state that is read.
    package let version: CommitVersion

    /// The read time that the client gets: at least `version`; no later commit has a time at or below it.
    package let readMicroseconds: UInt64

    /// Nil when the database holds nothing yet.
    let databaseNumber: UInt32?

    /// The transaction that takes note of what is read.
    let transaction: StoreTransaction?

    /// The same state, without a transaction that takes note of what is read.
    package var withoutTransaction: ReadPoint {
        ReadPoint(
            database: database, version: version, readMicroseconds: readMicroseconds, databaseNumber: databaseNumber,
            transaction: nil)
    }

    package var readTime: TimestampValue { TimestampValue(microseconds: Int64(clamping: readMicroseconds)) }
}
