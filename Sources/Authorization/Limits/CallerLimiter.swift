internal import Basics
internal import Calls
internal import Identity
internal import Synchronization

/// Limits how often callers ask, by network and by user. Memory is bounded: callers that have not asked for longest are
/// forgotten. Thread-safe.
///
/// An admitted caller keeps its shares, so a further call of it costs a lock and some arithmetic for each.
final class CallerLimiter: Sendable {
    enum Limit: Int, CaseIterable, Sendable {
        case networkRequests, userRequests, networkRefusals

        /// As `/metrics` has it.
        var label: String {
            switch self {
            case .networkRequests: "address_requests"
            case .userRequests: "user_requests"
            case .networkRefusals: "address_refusals"
            }
        }

        fileprivate var text: String {
            switch self {
            case .networkRequests: "Too many requests from this address"
            case .userRequests: "Too many requests of this user"
            case .networkRefusals: "Too many requests without a valid credential from this address"
            }
        }
    }

    /// What a caller has left of one limit.
    final class Share: Sendable {
        let limit: Limit
        fileprivate let bucket: Mutex<TokenBucket>
        /// Requests that were refused since the last one that was not.
        fileprivate let refusals = Atomic<Int>(0)

        fileprivate init(_ limit: Limit, _ bucket: TokenBucket) {
            self.limit = limit
            self.bucket = Mutex(bucket)
        }
    }

    /// A limit that was reached.
    struct Exceeded {
        let error: RequestError
        /// When the caller may come again.
        let seconds: Int
        /// Whether the caller has come again many times without waiting, after refusals.
        let isHopeless: Bool
    }

    /// Refusals in a row after which a caller is not expected to wait.
    static let refusalsInRowMax = 50

    private enum Key: Hashable {
        case network(NetworkAddress, Limit)
        case user([UInt8])
    }

    private let rates: CallerRates
    private let shares: Mutex<RecentTable<Key, Share>>
    private let counts = Limit.allCases.map { _ in Counter() }
    private let now: @Sendable () -> UInt64

    private final class Counter: Sendable { let value = Atomic<UInt64>(0) }

    /// - Parameters:
    ///   - entriesMax: networks and users that are remembered.
    ///   - now: milliseconds of a clock that never steps back.
    init(_ rates: CallerRates, entriesMax: Int = 100_000, now: @escaping @Sendable () -> UInt64) {
        self.rates = rates
        self.now = now
        shares = Mutex(RecentTable(entriesMax: entriesMax))
    }

    /// Whether requests are counted at all.
    var limitsRequests: Bool { rates.networkRequests > 0 || rates.userRequests > 0 }

    /// Callers in memory.
    var count: Int { shares.withLock { $0.count } }

    /// Requests that each limit has refused.
    var refused: [(label: String, count: UInt64)] {
        Limit.allCases.map { ($0.label, counts[$0.rawValue].value.load(ordering: .relaxed)) }
    }

    // MARK: Requests

    /// The shares that the requests of a caller use; none for principals.
    func shares(of caller: Caller, at network: NetworkAddress?) -> [Share] {
        switch caller {
        case .service, .admin: return []
        case .anonymous: return requestShare(of: network)
        case .user:
            guard rates.userRequests > 0 else { return requestShare(of: network) }
            let user = share(.user(Array(caller.identity.utf8)), .userRequests, perSecond: rates.userRequests)
            return requestShare(of: network) + [user]
        }
    }

    private func requestShare(of network: NetworkAddress?) -> [Share] {
        guard rates.networkRequests > 0, let network else { return [] }
        return [share(.network(network, .networkRequests), .networkRequests, perSecond: rates.networkRequests)]
    }

    private func share(_ key: Key, _ limit: Limit, perSecond: Int) -> Share {
        let rate = UInt64(clamping: perSecond)
        return share(key, limit, TokenBucket(max: rate * 2, perSecond: rate, now: now()))
    }

    private func share(_ key: Key, _ limit: Limit, _ full: @autoclosure () -> TokenBucket) -> Share {
        shares.withLock { table in
            if let known = table.touch(key) { return known }
            let made = Share(limit, full())
            table.insert(made, at: key)
            return made
        }
    }

    /// Counts a request.
    ///
    /// - Returns: the first limit that it exceeds; nil if it may be served.
    func take(_ shares: [Share]) -> Exceeded? {
        if shares.isEmpty { return nil }
        let now = now()
        for share in shares {
            let wait = share.bucket.withLock { bucket -> UInt64 in
                bucket.fill(now: now)
                return bucket.take() ? 0 : bucket.waitMilliseconds
            }
            if wait > 0 { return exceeded(share, wait) }
            share.refusals.store(0, ordering: .relaxed)
        }
        return nil
    }

    // MARK: Refusals

    /// The clock of refusals is slower than that of requests by this: its second is a minute.
    private static let refusalClock: UInt64 = 60

    /// Whether a network has had too many UNAUTHENTICATED answers to get another one now.
    func refusalsExceeded(_ network: NetworkAddress?) -> Exceeded? {
        guard rates.networkRefusals > 0, let network else { return nil }
        guard let share = shares.withLock({ $0.value(at: .network(network, .networkRefusals)) }) else { return nil }
        let now = now() / Self.refusalClock
        let wait = share.bucket.withLock { bucket -> UInt64 in
            bucket.fill(now: now)
            return bucket.waitMilliseconds
        }
        if wait > 0 { return exceeded(share, wait * Self.refusalClock) }
        share.refusals.store(0, ordering: .relaxed)
        return nil
    }

    /// Counts an UNAUTHENTICATED answer to a network.
    func refused(_ network: NetworkAddress?) {
        guard rates.networkRefusals > 0, let network else { return }
        let now = now() / Self.refusalClock
        let rate = UInt64(clamping: rates.networkRefusals)
        let share = share(
            .network(network, .networkRefusals), .networkRefusals,
            TokenBucket(max: rate, perSecond: rate, now: now))
        share.bucket.withLock { bucket in
            bucket.fill(now: now)
            _ = bucket.take()
        }
    }

    private func exceeded(_ share: Share, _ waitMilliseconds: UInt64) -> Exceeded {
        counts[share.limit.rawValue].value.wrappingAdd(1, ordering: .relaxed)
        let inRow = share.refusals.wrappingAdd(1, ordering: .relaxed).newValue
        let seconds = Int(clamping: waitMilliseconds / 1_000) + 1
        return Exceeded(
            error: RequestError(.resourceExhausted, "\(share.limit.text); try again in \(seconds) s."),
            seconds: seconds, isHopeless: share.limit == .networkRefusals && inRow > Self.refusalsInRowMax)
    }
}
