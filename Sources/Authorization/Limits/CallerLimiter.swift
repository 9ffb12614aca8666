internal import Basics
internal import Calls
internal import Identity
internal import Synchronization

/// Limits what callers ask for, by network and by user. Memory is bounded: callers that have not asked for longest are
/// forgotten. Thread-safe.
///
/// An admitted caller keeps its shares, so a further call of it costs a lock and some arithmetic for each.
final class CallerLimiter: Sendable {
    enum Limit: Int, CaseIterable, Sendable {
        case networkRequests, userRequests, networkRefusals, networkCommits, userCommits, networkRuleWork, userRuleWork
        case networkListeners, userListeners

        /// As `/metrics` has it.
        var label: String {
            switch self {
            case .networkRequests: "address_requests"
            case .userRequests: "user_requests"
            case .networkRefusals: "address_refusals"
            case .networkCommits: "address_commits"
            case .userCommits: "user_commits"
            case .networkRuleWork: "address_rule_work"
            case .userRuleWork: "user_rule_work"
            case .networkListeners: "address_listeners"
            case .userListeners: "user_listeners"
            }
        }

        fileprivate var text: String {
            switch self {
            case .networkRequests: "Too many requests from this address"
            case .userRequests: "Too many requests of this user"
            case .networkRefusals: "Too many requests without a valid credential from this address"
            case .networkCommits: "Too many commits from this address"
            case .userCommits: "Too many commits of this user"
            case .networkRuleWork: "Too much work of security rules for this address"
            case .userRuleWork: "Too much work of security rules for this user"
            case .networkListeners: "Too many listeners of this address"
            case .userListeners: "Too many listeners of this user"
            }
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

    private let rates: CallerRates
    private let shares: Mutex<RecentTable<Owner, Share>>
    private let networkListeners: OpenCounts<Owner>
    private let userListeners: OpenCounts<Owner>
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
        networkListeners = OpenCounts(max: rates.networkListeners)
        userListeners = OpenCounts(max: rates.userListeners)
    }

    /// Whether callers without a credential have limits.
    var limitsNetworks: Bool { rates.limitsNetworks }
    /// Whether work of rules is counted.
    var limitsRuleWork: Bool { rates.networkRuleWork | rates.userRuleWork > 0 }

    /// Callers in memory.
    var count: Int { shares.withLock { $0.count } }

    /// What each limit has refused.
    var refused: [(label: String, count: UInt64)] {
        Limit.allCases.map { ($0.label, counts[$0.rawValue].value.load(ordering: .relaxed)) }
    }

    // MARK: Shares

    /// The shares that a caller uses; none for principals.
    func shares(of caller: Caller, at network: NetworkAddress?) -> [Share] {
        switch caller {
        case .service, .admin: return []
        case .anonymous: return share(of: network)
        case .user:
            guard rates.limitsUsers else { return share(of: network) }
            return share(of: network) + [share(.user(Array(caller.identity.utf8)))]
        }
    }

    private func share(of network: NetworkAddress?) -> [Share] {
        guard rates.limitsNetworks, let network else { return [] }
        return [share(.network(network))]
    }

    private func share(_ owner: Owner) -> Share {
        shares.withLock { table in
            if let known = table.touch(owner) { return known }
            let made = Share(owner, Buckets(of: owner, rates, now: clock(of: owner)))
            table.insert(made, at: owner)
            return made
        }
    }

    /// The clock of refusals is slower than that of requests by this: its second is a minute.
    private static let refusalClock: UInt64 = 60

    private func clock(of owner: Owner) -> UInt64 {
        if case .refusals = owner { now() / Self.refusalClock } else { now() }
    }

    // MARK: Requests, commits, work

    /// Counts a request.
    ///
    /// - Returns: the first limit that it exceeds; nil if it may be served.
    func take(_ shares: [Share]) -> Exceeded? { use(.requests, of: shares) }

    /// Counts a commit; as ``take(_:)``.
    func takeCommit(_ shares: [Share]) -> Exceeded? { use(.commits, of: shares) }

    private func use(_ rate: Rate?, of shares: [Share]) -> Exceeded? {
        if shares.isEmpty { return nil }
        let now = now()
        for share in shares {
            if let (limit, wait) = share.use(rate, now: now) { return exceeded(limit, wait) }
        }
        return nil
    }

    /// Counts work that rules have done. A caller that has used too much of it makes no calls until it is paid.
    func spend(ruleWork work: Int, of shares: [Share]) {
        guard limitsRuleWork else { return }
        for share in shares { share.spend(ruleWork: work) }
    }

    // MARK: Listeners

    /// Counts a target that is listened to; as ``take(_:)``. Where nothing is returned, ``closeListener(_:)`` follows.
    func openListener(_ shares: [Share]) -> Exceeded? {
        if let exceeded = use(nil, of: shares) { return exceeded }
        for (index, share) in shares.enumerated() where !listeners(of: share).enter(share.owner) {
            for entered in shares[..<index] { listeners(of: entered).leave(entered.owner) }
            return exceeded(share.isOfUser ? .userListeners : .networkListeners)
        }
        return nil
    }

    func closeListener(_ shares: [Share]) { for share in shares { listeners(of: share).leave(share.owner) } }

    private func listeners(of share: Share) -> OpenCounts<Owner> { share.isOfUser ? userListeners : networkListeners }

    // MARK: Refusals

    /// Whether a network has had too many UNAUTHENTICATED answers to get another one now.
    func refusalsExceeded(_ network: NetworkAddress?) -> Exceeded? {
        guard rates.networkRefusals > 0, let network else { return nil }
        guard let share = shares.withLock({ $0.value(at: .refusals(network)) }) else { return nil }
        let wait = share.wait(forRefusalAt: now() / Self.refusalClock)
        if wait == 0 {
            share.refusals.store(0, ordering: .relaxed)
            return nil
        }
        let inRow = share.refusals.wrappingAdd(1, ordering: .relaxed).newValue
        return exceeded(.networkRefusals, wait * Self.refusalClock, isHopeless: inRow > Self.refusalsInRowMax)
    }

    /// Counts an UNAUTHENTICATED answer to a network.
    func refused(_ network: NetworkAddress?) {
        guard rates.networkRefusals > 0, let network else { return }
        share(.refusals(network)).takeRefusal(now: now() / Self.refusalClock)
    }

    // MARK: What is exceeded

    private func exceeded(_ limit: Limit, _ waitMilliseconds: UInt64, isHopeless: Bool = false) -> Exceeded {
        count(limit)
        let seconds = Int(clamping: waitMilliseconds / 1_000) + 1
        return Exceeded(
            error: RequestError(.resourceExhausted, "\(limit.text); try again in \(seconds) s."), seconds: seconds,
            isHopeless: isHopeless)
    }

    /// A limit that no time mends.
    private func exceeded(_ limit: Limit) -> Exceeded {
        count(limit)
        return Exceeded(error: RequestError(.resourceExhausted, "\(limit.text)."), seconds: 1, isHopeless: false)
    }

    private func count(_ limit: Limit) { counts[limit.rawValue].value.wrappingAdd(1, ordering: .relaxed) }
}
