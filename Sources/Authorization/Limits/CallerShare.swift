// What is left to one network, or to one user, of the limits of callers.

internal import Basics
internal import Calls
internal import Synchronization

extension CallerLimiter {
    /// Who has a share.
    enum Owner: Hashable, Sendable {
        case network(NetworkAddress)
        /// By its identity (``Identity/Caller/identity``).
        case user([UInt8])
        /// A network, for its UNAUTHENTICATED answers.
        case refusals(NetworkAddress)
    }

    /// What is limited by the second.
    enum Rate { case requests, commits }

    /// What is left of each rate; nil for one that is not limited. A second of refusals is a minute.
    struct Buckets {
        fileprivate var requests: TokenBucket?
        fileprivate var commits: TokenBucket?
        fileprivate var ruleWork: TokenBucket?
        fileprivate var refusals: TokenBucket?

        /// - Parameter now: milliseconds.
        init(of owner: Owner, _ rates: CallerRates, now: UInt64) {
            func bucket(_ perSecond: Int, seconds: UInt64 = 2) -> TokenBucket? {
                let rate = UInt64(clamping: perSecond)
                return rate == 0 ? nil : TokenBucket(max: rate * seconds, perSecond: rate, now: now)
            }
            switch owner {
            case .network:
                requests = bucket(rates.networkRequests)
                commits = bucket(rates.networkCommits)
                ruleWork = bucket(rates.networkRuleWork)
            case .user:
                requests = bucket(rates.userRequests)
                commits = bucket(rates.userCommits)
                ruleWork = bucket(rates.userRuleWork)
            case .refusals: refusals = bucket(rates.networkRefusals, seconds: 1)
            }
        }
    }

    /// What an owner has left. Thread-safe.
    final class Share: Sendable {
        let owner: Owner
        private let buckets: Mutex<Buckets>
        /// Refusals since the last request that was not refused.
        let refusals = Atomic<Int>(0)

        init(_ owner: Owner, _ buckets: Buckets) {
            self.owner = owner
            self.buckets = Mutex(buckets)
        }

        var isOfUser: Bool { if case .user = owner { true } else { false } }

        /// Uses one of a rate, if there is one and the work of rules is paid.
        ///
        /// - Parameter rate: nil to use nothing.
        /// - Returns: the limit that is reached, and milliseconds until there is more; nil if one was used.
        func use(_ rate: Rate?, now: UInt64) -> (Limit, UInt64)? {
            let isOfUser = isOfUser
            return buckets.withLock { buckets in
                if let wait = buckets.ruleWork?.wait(at: now), wait > 0 {
                    return (isOfUser ? .userRuleWork : .networkRuleWork, wait)
                }
                switch rate {
                case .requests:
                    guard let wait = buckets.requests?.take(at: now), wait > 0 else { return nil }
                    return (isOfUser ? .userRequests : .networkRequests, wait)
                case .commits:
                    guard let wait = buckets.commits?.take(at: now), wait > 0 else { return nil }
                    return (isOfUser ? .userCommits : .networkCommits, wait)
                case nil: return nil
                }
            }
        }

        func spend(ruleWork work: Int) { buckets.withLock { $0.ruleWork?.spend(work) } }

        func wait(forRefusalAt now: UInt64) -> UInt64 { buckets.withLock { $0.refusals?.wait(at: now) ?? 0 } }

        func takeRefusal(now: UInt64) { _ = buckets.withLock { $0.refusals?.take(at: now) } }
    }
}

extension TokenBucket {
    /// Milliseconds until there is a token, after what time has earned.
    fileprivate mutating func wait(at now: UInt64) -> UInt64 {
        fill(now: now)
        return waitMilliseconds
    }

    /// Uses one token.
    ///
    /// - Returns: 0, or milliseconds until there is one.
    fileprivate mutating func take(at now: UInt64) -> UInt64 {
        fill(now: now)
        return take() ? 0 : waitMilliseconds
    }
}
