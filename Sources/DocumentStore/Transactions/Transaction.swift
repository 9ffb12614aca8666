// One open transaction.

internal import DocumentModel
internal import KeyValueStore
internal import Synchronization

/// Judges a document by its path below `documents` and its canonical fields.
package typealias DocumentFilter = @Sendable (_ path: RawSpan, _ fields: RawSpan) -> Bool

/// A snapshot, and for one that may write, what was read in it.
///
/// Shared by the threads that read in it and the commit thread; what changes is behind a lock.
final class Transaction: Sendable {
    let identifier: TransactionIdentifier
    let database: DatabaseName
    let isReadOnly: Bool

    /// The state that its reads see.
    let version: CommitVersion
    /// What its reads report as read time.
    let readMicroseconds: UInt64

    /// When it began, in elapsed milliseconds.
    let beganMilliseconds: UInt64

    /// The number of the first attempt in a row of retries: smaller is older, and older goes first.
    let age: UInt64

    /// Hashes of the keys that earlier attempts of the row conflicted on.
    let earlierConflicts: [UInt64]

    private struct State: ~Copyable {
        var reads: ReadSet
        var lastUsedMilliseconds: UInt64
    }

    private let state: Mutex<State>

    init(
        identifier: TransactionIdentifier, database: DatabaseName, isReadOnly: Bool, version: CommitVersion,
        readMicroseconds: UInt64, nowMilliseconds: UInt64, age: UInt64, earlierConflicts: [UInt64], readsMaximum: Int
    ) {
        self.identifier = identifier
        self.database = database
        self.isReadOnly = isReadOnly
        self.version = version
        self.readMicroseconds = readMicroseconds
        beganMilliseconds = nowMilliseconds
        self.age = age
        self.earlierConflicts = earlierConflicts
        state = Mutex(State(reads: ReadSet(maximum: readsMaximum), lastUsedMilliseconds: nowMilliseconds))
    }

    var lastUsedMilliseconds: UInt64 { state.withLock { $0.lastUsedMilliseconds } }

    /// Takes note that its client is alive.
    func touch(nowMilliseconds: UInt64) {
        state.withLock { $0.lastUsedMilliseconds = max($0.lastUsedMilliseconds, nowMilliseconds) }
    }

    /// Takes note of a document that was read, or found missing (version 0).
    func noteRead(key: RawSpan, versionMicroseconds: UInt64) throws(RequestError) {
        if isReadOnly { return }
        try withReads { (reads) throws(RequestError) in
            try reads.note(key: key, versionMicroseconds: versionMicroseconds)
        }
    }

    /// Takes note of a range that was walked.
    func noteRead(_ range: ReadRange) throws(RequestError) {
        if isReadOnly { return }
        try withReads { (reads) throws(RequestError) in try reads.note(range) }
    }

    /// Lends the read set under the transaction's lock.
    func withReads<Answer>(
        _ body: (inout ReadSet) throws(RequestError) -> Answer
    ) throws(RequestError) -> Answer {
        try state.withLock { (state) throws(RequestError) in try body(&state.reads) }
    }
}
