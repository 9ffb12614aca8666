// All open transactions, and the attempts that were aborted a moment ago.

internal import Basics
internal import DocumentModel
internal import Storage
internal import Synchronization

/// What is remembered of an aborted attempt, for the one that retries it.
struct AbortedAttempt: Sendable {
    var nonce: UInt64
    /// The first attempt's number.
    var age: UInt64
    /// Hashes of the keys conflicted on, by this attempt and those before it.
    var conflicts: [UInt64]
    /// Numbers of the transactions that won the deadlock for which this attempt was aborted. A retry begins after they
    /// have ended.
    var winners: [UInt64] = []
    /// The commit that got `ABORTED`, so that its repetition gets the same.
    var request: RequestIdentifier?
    /// Its database was moved to another store.
    var hasMoved = false
}

/// Finds transactions by their identifiers. Thread-safe.
final class TransactionTable: Sendable {
    private struct State {
        var open: [UInt64: StoreTransaction] = [:]
        /// Accounts of closed connections with open transactions.
        var left: [TransactionAccount] = []
        var aborted: [UInt64: AbortedAttempt] = [:]
        /// Keys of `aborted`, oldest first, from `abortedStart` on.
        var abortedOrder: [UInt64] = []
        var abortedStart = 0
        var nextNumber: UInt64 = 1
        /// Transactions that the next rounds look at.
        var unchecked: [UInt64] = []
        /// Transactions that may have blocked others and were dropped since the last round.
        var dropped: [UInt64] = []

        mutating func add(_ transaction: StoreTransaction) {
            open[transaction.identifier.number] = transaction
            transaction.account?.open.insert(transaction.identifier.number)
        }

        mutating func remove(_ transaction: StoreTransaction) {
            open[transaction.identifier.number] = nil
            transaction.account?.open.remove(transaction.identifier.number)
        }

        /// Ends a transaction without a request of its client.
        mutating func drop(_ transaction: StoreTransaction) {
            remove(transaction)
            if transaction.mayBlockOthers { dropped.append(transaction.identifier.number) }
        }

        /// Ends a transaction of a closed connection that nobody has used since, the earliest closed first.
        /// - Returns: whether there was one.
        mutating func makeRoom() -> Bool {
            while let account = left.first {
                while let number = account.open.popFirst() {
                    guard let transaction = open[number], let left = account.leftMilliseconds else { continue }
                    // One that continues over another connection counts there, and no longer here.
                    if transaction.lastUsedMilliseconds > left { continue }
                    drop(transaction)
                    return true
                }
                left.removeFirst()
            }
            return false
        }
    }

    private let state = Mutex(State())
    private let configuration: StoreConfiguration
    private let memory: TransactionMemory
    /// Part of the ids of this run of the server.
    private let run = TransactionIdentifier.randomRun()

    /// Aborted attempts remembered.
    private static let abortedMax = 65_536

    init(configuration: StoreConfiguration) {
        self.configuration = configuration
        memory = TransactionMemory(bytesMax: configuration.transactionBytesMax)
    }

    /// Bytes that all open transactions hold, about.
    var byteCount: Int { memory.bytes }

    var openCount: Int { state.withLock { $0.open.count } }

    private var nowMilliseconds: UInt64 { configuration.clock.elapsedMilliseconds }

    /// An identifier for a transaction that is about to begin.
    /// - Parameter readMicroseconds: what the transaction sees if it only reads; nil if it may write.
    func reserveIdentifier(readMicroseconds: UInt64? = nil) -> TransactionIdentifier {
        let number = state.withLock { state in
            defer { state.nextNumber += 1 }
            return state.nextNumber
        }
        if let readMicroseconds {
            return TransactionIdentifier(number: number, readMicroseconds: readMicroseconds, run: run)
        }
        return TransactionIdentifier(number: number, nonce: .random(in: .min ... .max), run: run)
    }

    /// Whether another server, or this one before its last start, has begun a transaction.
    func isForeign(_ identifier: TransactionIdentifier) -> Bool { identifier.isForeign(to: run) }

    /// Why a transaction that is not open cannot continue.
    func absence(of identifier: TransactionIdentifier) -> RequestError {
        let isLost = isForeign(identifier) || abortedAttempt(identifier)?.hasMoved == true
        return isLost ? .lostTransaction : .unknownTransaction
    }

    /// Opens a transaction.
    /// - Parameters:
    ///   - retried: the aborted attempt that this one follows, if any.
    ///   - account: that of the connection it comes over, if any.
    ///   - claim: to the number of the database, if it is not stored.
    func begin(
        _ identifier: TransactionIdentifier, in database: DatabaseName, kind: StoreTransaction.Kind,
        retried: AbortedAttempt?, account: TransactionAccount?, claim: DatabaseClaim? = nil
    ) throws(RequestError) {
        let transaction = try StoreTransaction(
            identifier: identifier, database: database, kind: kind, account: account, claim: claim,
            nowMilliseconds: nowMilliseconds, age: retried?.age ?? identifier.number,
            earlierConflicts: retried?.conflicts ?? [], readsMax: configuration.transactionReadsMax, memory: memory)
        let refusal = state.withLock { state -> RequestError? in
            if let account, account.open.count >= configuration.transactionsPerConnectionMax {
                return tooManyOnConnection
            }
            if state.open.count >= configuration.transactionsMax, !state.makeRoom() { return tooMany }
            state.add(transaction)
            return nil
        }
        if let refusal { throw refusal }
    }

    private var tooMany: RequestError {
        RequestError(
            .resourceExhausted, "Too many open transactions: at most \(configuration.transactionsMax) are allowed.")
    }

    private var tooManyOnConnection: RequestError {
        RequestError(
            .resourceExhausted,
            """
            Too many transactions of this connection are open: at most \
            \(configuration.transactionsPerConnectionMax). Commit transactions or roll them back.
            """)
    }

    /// Takes note that a connection has closed.
    func leave(_ account: TransactionAccount) {
        let now = nowMilliseconds
        state.withLock { state in
            account.leftMilliseconds = now
            if !account.open.isEmpty { state.left.append(account) }
        }
    }

    /// The open transaction of this name, or nil.
    func open(_ identifier: TransactionIdentifier) -> StoreTransaction? {
        let found = state.withLock { $0.open[identifier.number] }
        return found?.identifier == identifier ? found : nil
    }

    /// The open transaction of this number, or nil.
    func open(number: UInt64) -> StoreTransaction? { state.withLock { $0.open[number] } }

    /// The open transaction of this name, which thereby counts as used.
    /// - Throws: `INVALID_ARGUMENT` when it is unknown, has ended or expired; `ABORTED` when another run of the server
    ///   has begun it.
    func transaction(_ identifier: TransactionIdentifier) throws(RequestError) -> StoreTransaction {
        let now = nowMilliseconds
        let found = state.withLock { $0.open[identifier.number] }
        guard let found, found.identifier == identifier, !isExpired(found, nowMilliseconds: now) else {
            throw absence(of: identifier)
        }
        found.touch(nowMilliseconds: now)
        return found
    }

    /// Takes a transaction out of the table, if it is open.
    func end(_ identifier: TransactionIdentifier) -> StoreTransaction? {
        let now = nowMilliseconds
        let found = state.withLock { state -> StoreTransaction? in
            guard let found = state.open[identifier.number], found.identifier == identifier else { return nil }
            state.remove(found)
            return found
        }
        guard let found, !isExpired(found, nowMilliseconds: now) else { return nil }
        return found
    }

    /// Takes all transactions of a database out of the table.
    func endAll(in database: DatabaseName) -> [StoreTransaction] {
        state.withLock { state in
            let ended = state.open.values.filter { $0.database == database }
            for transaction in ended { state.remove(transaction) }
            return ended
        }
    }

    /// When a transaction was last used, or nil if it is not open.
    func lastUsedMilliseconds(number: UInt64) -> UInt64? {
        state.withLock { $0.open[number] }?.lastUsedMilliseconds
    }

    // MARK: Aborted attempts

    /// - Parameter hasMoved: whether it was aborted because its database was moved.
    func noteAborted(
        _ transaction: StoreTransaction, conflicts: [UInt64], winners: [UInt64], request: RequestIdentifier?,
        hasMoved: Bool = false
    ) {
        let attempt = AbortedAttempt(
            nonce: transaction.identifier.nonce, age: transaction.age, conflicts: conflicts, winners: winners,
            request: request, hasMoved: hasMoved)
        state.withLock { state in
            state.aborted[transaction.identifier.number] = attempt
            // Some clients name their first attempt in every retry: it stands for all of them.
            if transaction.age != transaction.identifier.number {
                state.aborted[transaction.age]?.conflicts = conflicts
                state.aborted[transaction.age]?.winners = winners
            }
            state.abortedOrder.append(transaction.identifier.number)
            while state.abortedOrder.count - state.abortedStart > TransactionTable.abortedMax {
                state.aborted[state.abortedOrder[state.abortedStart]] = nil
                state.abortedStart += 1
            }
            if state.abortedStart > TransactionTable.abortedMax {
                state.abortedOrder.removeFirst(state.abortedStart)
                state.abortedStart = 0
            }
        }
    }

    /// What is remembered of an attempt that was aborted.
    func abortedAttempt(_ identifier: TransactionIdentifier) -> AbortedAttempt? {
        guard let attempt = state.withLock({ $0.aborted[identifier.number] }), attempt.nonce == identifier.nonce else {
            return nil
        }
        return attempt
    }

    // MARK: Time

    private func isExpired(_ transaction: StoreTransaction, nowMilliseconds now: UInt64) -> Bool {
        now >= transaction.beganMilliseconds + configuration.transactionLifetimeMilliseconds
            || now >= transaction.lastUsedMilliseconds + configuration.transactionIdleMilliseconds
    }

    /// Transactions that one round looks at.
    static let checkedMax = 10_000

    /// Drops transactions whose time is over. One round looks at some of them, the next round at the next ones, so that
    /// many open ones do not hold up commits.
    ///
    /// - Returns: those that may have blocked others and were dropped since the last round, by their numbers.
    func removeExpired() -> [UInt64] {
        let now = nowMilliseconds
        let some = state.withLock { state in
            state.left.removeAll { $0.open.isEmpty }
            if state.unchecked.isEmpty { state.unchecked = Array(state.open.keys) }
            let numbers = state.unchecked.suffix(Self.checkedMax)
            state.unchecked.removeLast(numbers.count)
            return numbers.compactMap { state.open[$0] }
        }
        for transaction in some where isExpired(transaction, nowMilliseconds: now) {
            state.withLock { state in
                if state.open[transaction.identifier.number] === transaction { state.drop(transaction) }
            }
        }
        return state.withLock { state in
            defer { state.dropped = [] }
            return state.dropped
        }
    }
}
