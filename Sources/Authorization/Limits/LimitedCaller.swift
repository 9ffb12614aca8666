internal import Basics
internal import Calls

/// The limits of one caller. Thread-safe.
struct LimitedCaller: Sendable {
    private let limiter: CallerLimiter
    private let shares: [CallerLimiter.Share]

    init(_ limiter: CallerLimiter, _ shares: [CallerLimiter.Share]) {
        self.limiter = limiter
        self.shares = shares
    }

    /// Counts a request.
    ///
    /// - Throws: `RESOURCE_EXHAUSTED`.
    func beginRequest(_ call: Call) throws(RequestError) { try Self.check(limiter.take(shares), call) }

    /// Counts a commit.
    ///
    /// - Throws: `RESOURCE_EXHAUSTED`.
    func beginCommit(_ call: Call) throws(RequestError) { try Self.check(limiter.takeCommit(shares), call) }

    /// Counts a target that is listened to, until ``closeListener()``.
    ///
    /// - Throws: `RESOURCE_EXHAUSTED`; then it is not counted.
    func openListener() throws(RequestError) { try Self.check(limiter.openListener(shares)) }

    func closeListener() { limiter.closeListener(shares) }

    /// Counts work that rules have done for the caller.
    func spend(ruleWork work: Int) { limiter.spend(ruleWork: work, of: shares) }

    /// - Throws: what is exceeded. The answer of the call says when its client may come again.
    static func check(_ exceeded: CallerLimiter.Exceeded?, _ call: Call? = nil) throws(RequestError) {
        guard let exceeded else { return }
        call?.noteRetry(afterSeconds: exceeded.seconds)
        if exceeded.isHopeless { call?.endConnection() }
        throw exceeded.error
    }
}
