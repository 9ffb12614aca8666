import Basics
import Synchronization

/// The unacknowledged writes of one instance, numbered in the order of their calls.
///
/// The server computes totals without the cache, so they would race with a write that nobody awaits: they wait until
/// the earlier writes to collections of the same id are settled. Programs therefore see their own writes, as long as
/// the server can be reached. Writes of the async forms are awaited by their callers and delay nothing. Thread-safe.
final class PendingWrites: Sendable {
    /// Names one write; numbers grow in the order of issue.
    struct Number: Hashable, Comparable, Sendable {
        var rawValue: UInt64
        static func < (left: Number, right: Number) -> Bool { left.rawValue < right.rawValue }
    }

    /// What pending writes affect: a document by its name, collections by their id.
    enum Place: Hashable, Sendable {
        case document(UTF8Text)
        case collection(UTF8Text)
    }

    private struct State {
        var next: UInt64 = 1
        /// Unsettled numbers below `next`; the smallest is found by scanning up from `lowWater`.
        var unsettled: Set<UInt64> = []
        var lowWater: UInt64 = 1
        /// The last unsettled write that touches a place; only of writes that others must wait for.
        var lastWrite: [Place: UInt64] = [:]
        var waiters: [(below: UInt64, id: UInt64, resume: @Sendable () -> Void)] = []
        var nextWaiter: UInt64 = 1
        /// Writes from now on, and those that are unsettled, get no reply any more.
        var isAbandoned = false
        var bytes = 0

        mutating func advance() {
            while lowWater < next, !unsettled.contains(lowWater) { lowWater += 1 }
        }

        mutating func takeReady() -> [@Sendable () -> Void] {
            guard !waiters.isEmpty else { return [] }
            let limit = lowWater
            let ready = waiters.filter { $0.below <= limit }.map(\.resume)
            waiters.removeAll { $0.below <= limit }
            return ready
        }
    }

    private let state = Mutex(State())
    /// Bytes of unacknowledged writes past which new ones are refused.
    let bytesMax: Int

    init(bytesMax: Int = 256 << 20) { self.bytesMax = bytesMax }

    /// Registers a write.
    ///
    /// - Parameters:
    ///   - documents: the names of the written documents if others must wait for the write, else empty.
    ///   - byteCount: the size of the request.
    /// - Returns: `nil` if too much is waiting already.
    func begin(documents: [String], byteCount: Int) -> Number? {
        state.withLock { state in
            guard state.bytes == 0 || state.bytes + byteCount <= bytesMax else { return nil }
            let number = state.next
            state.next += 1
            state.bytes += byteCount
            state.unsettled.insert(number)
            for name in documents {
                for place in Self.places(of: name) { state.lastWrite[place] = number }
            }
            return Number(rawValue: number)
        }
    }

    /// The write was acknowledged or rejected. The arguments are those of `begin`.
    func finish(_ number: Number, documents: [String], byteCount: Int) {
        let ready = state.withLock { state in
            state.unsettled.remove(number.rawValue)
            state.bytes -= byteCount
            for name in documents {
                for place in Self.places(of: name) where state.lastWrite[place] == number.rawValue {
                    state.lastWrite[place] = nil
                }
            }
            state.advance()
            return state.takeReady()
        }
        for resume in ready { resume() }
    }

    /// The client ends: waits end now, and what is unsettled stays so.
    func abandon() {
        let resumes = state.withLock { state in
            state.isAbandoned = true
            defer { state.waiters = [] }
            return state.waiters.map(\.resume)
        }
        for resume in resumes { resume() }
    }

    /// Writes that are neither acknowledged nor rejected.
    var count: Int { state.withLock { $0.unsettled.count } }

    /// Whether a total over the place has to wait now.
    func mustWait(for place: Place) -> Bool {
        state.withLock { !$0.lastWrite.isEmpty && $0.lastWrite[place] != nil }
    }

    /// Calls `body` once every write issued so far that touches the place is settled; at once, on the calling thread,
    /// if there is none.
    ///
    /// - Returns: a waiter for `stopWaiting(_:)`, or `nil` if `body` was called.
    @discardableResult
    func whenSettled(_ place: Place, _ body: @escaping @Sendable () -> Void) -> Waiter? {
        let waiter = state.withLock { state -> Waiter? in
            guard let last = state.lastWrite[place], last >= state.lowWater, !state.isAbandoned else { return nil }
            let id = state.nextWaiter
            state.nextWaiter += 1
            state.waiters.append((last + 1, id, body))
            return Waiter(id: id)
        }
        if waiter == nil { body() }
        return waiter
    }

    /// Names a registered wait.
    struct Waiter: Sendable {
        fileprivate var id: UInt64
    }

    /// Gives up waiting: calls the waiter's body now unless it was called already.
    func stopWaiting(_ waiter: Waiter) {
        let resume = state.withLock { state -> (@Sendable () -> Void)? in
            guard let index = state.waiters.firstIndex(where: { $0.id == waiter.id }) else { return nil }
            return state.waiters.remove(at: index).resume
        }
        resume?()
    }

    /// The document itself and the collections that carry its parent's id.
    private static func places(of name: String) -> [Place] {
        let utf8 = name.utf8
        guard let idSlash = utf8.lastIndex(of: UInt8(ascii: "/")) else { return [.document(UTF8Text(name))] }
        let parent = name[..<idSlash]
        let start = parent.utf8.lastIndex(of: UInt8(ascii: "/")).map { parent.utf8.index(after: $0) }
        let id = String(parent[(start ?? parent.startIndex)...])
        return [.document(UTF8Text(name)), .collection(UTF8Text(id))]
    }
}
