// One open transaction.

internal import Basics
internal import DocumentModel
internal import Storage

/// Judges a document by its path below `documents` and its canonical fields.
package typealias DocumentFilter = @Sendable (_ path: RawSpan, _ fields: RawSpan) -> Bool

/// What one transaction sees, and for one that may write, what it has read.
///
/// Shared by the threads that read in it and the commit thread; what changes is guarded by a lock.
final class StoreTransaction: Sendable {
    let identifier: TransactionIdentifier
    let database: DatabaseName
    let kind: Kind
    /// The connection that began it, if it came over one.
    let account: TransactionAccount?
    /// Keeps the number of a database that is not stored, under which it notes what it found missing.
    private let claim: DatabaseClaim?

    /// When it began, in elapsed milliseconds.
    let beganMilliseconds: UInt64

    /// The number of the first attempt in a row of retries: smaller is older, and older goes first.
    let age: UInt64

    /// Hashes of the keys that earlier attempts of the row conflicted on.
    let earlierConflicts: [UInt64]

    /// What its reads see, and what it may do.
    enum Kind: Sendable, Equatable {
        /// Reads one state and writes nothing.
        case readOnly(microseconds: UInt64)
        /// Reads the state at its first read; commits if what it read still stands.
        case optimistic
        /// Each read sees the newest state and locks what it sees; commits if what it read still stands, which the
        /// locks see to, also when it writes nothing.
        case pessimistic
    }

    private struct State: ~Copyable {
        var reads: ReadSet
        var lastUsedMilliseconds: UInt64
        var firstReadMicroseconds: UInt64?
        var lastReadMicroseconds: UInt64?
        var held: [WriteList] = []
        var heldBytes = 0
        /// What was taken of the memory of all transactions.
        var bytesTaken = 0
    }

    /// Reads and their validation pass yield points under its lock, so it cannot be a `Mutex`.
    private let state: Monitor<State>
    private let memory: TransactionMemory

    /// Memory of a transaction that has read nothing, in bytes, about.
    private static let fixedBytes = 1_024

    init(
        identifier: TransactionIdentifier, database: DatabaseName, kind: Kind, account: TransactionAccount? = nil,
        claim: DatabaseClaim? = nil, nowMilliseconds: UInt64, age: UInt64, earlierConflicts: [UInt64], readsMax: Int,
        memory: TransactionMemory
    ) throws(RequestError) {
        self.identifier = identifier
        self.database = database
        self.kind = kind
        self.account = account
        self.claim = claim
        beganMilliseconds = nowMilliseconds
        self.age = age
        self.earlierConflicts = earlierConflicts
        state = Monitor(State(reads: ReadSet(maximum: readsMax), lastUsedMilliseconds: nowMilliseconds))
        self.memory = memory
        try state.withLock { (state) throws(RequestError) in try settle(&state) }
    }

    deinit { memory.giveBack(state.withLock { $0.bytesTaken }) }

    /// Takes what the transaction needs now of the memory of all.
    private func settle(_ state: inout State) throws(RequestError) {
        let needed = Self.fixedBytes + state.reads.byteCount + state.heldBytes - state.bytesTaken
        if needed > 0 { try memory.take(needed) } else { memory.giveBack(-needed) }
        state.bytesTaken += needed
    }

    var isReadOnly: Bool {
        if case .readOnly = kind { true } else { false }
    }

    /// Others may wait for its end, or may have to.
    var mayBlockOthers: Bool { kind == .pessimistic || !earlierConflicts.isEmpty }

    /// The state that a read sees, which is also what it reports as read time.
    /// - Parameter newest: returns the newest state.
    func readMicroseconds(newest: () -> UInt64) -> UInt64 {
        if case .readOnly(let microseconds) = kind { return microseconds }
        return state.withLock { state in
            if kind == .optimistic, let first = state.firstReadMicroseconds { return first }
            let now = newest()
            if state.firstReadMicroseconds == nil { state.firstReadMicroseconds = now }
            state.lastReadMicroseconds = now
            return now
        }
    }

    /// The earliest state that it has read; nil if it has read nothing.
    var firstReadMicroseconds: UInt64? { state.withLock { $0.firstReadMicroseconds } }

    /// All its reads saw one state: without writes it has its place in the order of transactions there, whatever has
    /// changed since.
    var hasReadOneSnapshot: Bool {
        kind != .pessimistic || state.withLock { $0.firstReadMicroseconds == $0.lastReadMicroseconds }
    }

    var lastUsedMilliseconds: UInt64 { state.withLock { $0.lastUsedMilliseconds } }

    /// Takes note that its client is alive.
    func touch(nowMilliseconds: UInt64) {
        state.withLock { $0.lastUsedMilliseconds = max($0.lastUsedMilliseconds, nowMilliseconds) }
    }

    /// Keeps writes for the commit.
    func hold(_ writes: WriteList) throws(RequestError) {
        if isReadOnly { throw .invalidArgument("A read-only transaction cannot write.") }
        try state.withLock { (state) throws(RequestError) in
            let bytes = writes.bytes.count + 64 * writes.count
            if state.heldBytes + bytes > DocumentStore.heldBytesMax {
                throw RequestError(
                    .resourceExhausted,
                    "The transaction holds writes of more than \(DocumentStore.heldBytesMax) bytes.")
            }
            state.heldBytes += bytes
            do throws(RequestError) {
                try settle(&state)
            } catch {
                state.heldBytes -= bytes
                throw error
            }
            state.held.append(writes)
        }
    }

    /// The writes that are kept for the commit.
    var heldWrites: [WriteList] { state.withLock { $0.held } }

    /// Takes note of a document that was read, or found missing (version 0).
    func noteRead(key: RawSpan, versionMicroseconds: UInt64) throws(RequestError) {
        if isReadOnly { return }
        try note { (reads) throws(RequestError) in try reads.note(key: key, versionMicroseconds: versionMicroseconds) }
    }

    /// Takes note of a range that was walked.
    func noteRead(_ range: ReadRange) throws(RequestError) {
        if isReadOnly { return }
        try note { (reads) throws(RequestError) in try reads.note(range) }
    }

    /// Adds to the read set.
    /// - Throws: `RESOURCE_EXHAUSTED` too if the transactions hold too much. The read is noted all the same.
    private func note(_ body: (inout ReadSet) throws(RequestError) -> Void) throws(RequestError) {
        try state.withLock { (state) throws(RequestError) in
            try body(&state.reads)
            try settle(&state)
        }
    }

    /// A query has come to its end before all of what its walks went over: only documents that meet this filter matter.
    ///
    /// - Parameter keys: the keys that such documents have; nil if that is not known.
    func narrowReads(
        of query: ObjectIdentifier, within keys: (lower: [UInt8], upper: [UInt8])?, to filter: @escaping DocumentFilter
    ) {
        if isReadOnly { return }
        state.withLock { $0.reads.narrow(query, within: keys, to: filter) }
    }

    /// Lends the read set under the transaction's lock.
    func withReads<Answer>(
        _ body: (inout ReadSet) throws(RequestError) -> Answer
    ) throws(RequestError) -> Answer {
        try state.withLock { (state) throws(RequestError) in try body(&state.reads) }
    }
}
