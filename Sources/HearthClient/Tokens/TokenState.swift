import Basics
import DocumentModel
import NativeProtocol

/// Decides when a client asks for its token: a state machine without I/O and without a clock.
///
///     resting ──need, renew, refresh──▶ asking ──answered──▶ resting, with a token or with a failure
///                                         │ timedOut           ▲
///                                         └──────▶ overdue ────┘ answered
///
/// There is one question at a time. After a failure, and after an answer to a refused token, the next question waits.
/// Times are milliseconds of a clock that never steps back, unless they are called `wall`: milliseconds since 1970.
struct TokenState {
    /// What the asker of a token has to do.
    enum Need: Equatable {
        case have(TokenAnswer)
        /// The answer comes with the end of the question that is asked.
        case wait
    }

    private enum Phase: Equatable {
        case resting
        case asking(force: Bool)
        /// Asked, and not answered in time. What is asked meanwhile fails at once.
        case overdue
    }

    /// Waits after failures of the provider.
    private static let failureBackoff = BackoffPolicy(
        initial: .milliseconds(250), multiplier: 2, maximum: .seconds(60), jitter: 0.3)
    /// Waits after a token that the server refused, and between refreshes that bring no longer life.
    private static let renewalBackoff = BackoffPolicy(
        initial: .seconds(1), multiplier: 2, maximum: .seconds(60), jitter: 0.3)
    /// A renewal after so long counts as the first one again.
    private static let quietMilliseconds: UInt64 = 120_000

    private var phase = Phase.resting
    private(set) var token: ClientToken?
    private(set) var claims: TokenClaims?
    /// The moment at which the token is to be replaced, and the end of its life; nil for a token without an end.
    private(set) var refreshAt: UInt64?
    private var expiresAt: UInt64?
    private var failure: RequestError?
    private var failures = 0
    private var renewals = 0
    private var renewedAt: UInt64 = 0
    /// No question before this moment.
    private var retryAt: UInt64 = 0
    /// Refreshes in a row that brought no token with a longer life.
    private var staleAnswers = 0
    /// The server refused this token while the provider was asked: an answer with the same one does not do.
    private var refused: Credential?
    /// The user may have changed while the provider was asked.
    private var asksAgain = false
    private var random: JitterGenerator

    init(jitterSeed: UInt64) { random = JitterGenerator(seed: jitterSeed) }

    /// What a question that is to be asked now has as `forceRefresh`; nil if none is to be. Set by the functions below,
    /// taken by their caller.
    private(set) var question: Bool?

    mutating func takeQuestion() -> Bool? { question.take() }

    // MARK: Questions

    /// A connection needs a token.
    mutating func need(now: UInt64) -> Need {
        if let token, let refreshAt, now < refreshAt, !isExpired(now: now) { return .have(.token(token)) }
        if case .asking = phase { return .wait }
        if phase == .overdue || failure != nil && now < retryAt { return .have(usable(now: now)) }
        ask(force: staleAnswers > 0)
        return .wait
    }

    /// The server has refused the token of an answer.
    mutating func renew(after generation: UInt64, now: UInt64) -> Need {
        if let token, token.generation > generation { return .have(.token(token)) }
        switch phase {
        case .asking(let force):
            if !force { refused = token?.credential }
            return .wait
        case .overdue: return .have(refusal)
        case .resting: break
        }
        if now < retryAt { return .have(refusal) }
        if now - renewedAt > Self.quietMilliseconds { renewals = 0 }
        renewedAt = now
        ask(force: true)
        return .wait
    }

    /// The token may be another one now.
    mutating func changed() {
        if phase == .resting { ask(force: false) } else { asksAgain = true }
    }

    /// The moment of `refreshAt` is there.
    mutating func refresh(now: UInt64) {
        guard phase == .resting, let refreshAt, refreshAt <= now else { return }
        ask(force: staleAnswers > 0)
    }

    private mutating func ask(force: Bool) {
        phase = .asking(force: force)
        question = force
    }

    // MARK: Answers

    /// The provider has not answered in time.
    mutating func timedOut(_ error: RequestError) {
        guard case .asking = phase else { return }
        phase = .overdue
        failure = error
    }

    /// The provider has answered.
    ///
    /// - Returns: whether those who wait get what `usable` and `renewed` say; false if there is a further question.
    mutating func answered(_ answer: Result<Credential, RequestError>, now: UInt64, wall: Int64) -> Bool {
        let isForced = phase == .asking(force: true)
        let refused = refused.take()
        phase = .resting
        if asksAgain {
            asksAgain = false
            ask(force: false)
            return false
        }
        switch answer {
        case .failure(let error): fail(error, now: now)
        case .success(let credential):
            take(credential, now: now, wall: wall)
            if let refused, refused == credential, !isForced {
                ask(force: true)
                return false
            }
            if isForced { noteRenewal(now: now) }
        }
        return true
    }

    private mutating func fail(_ error: RequestError, now: UInt64) {
        failure = error
        failures += 1
        retryAt = now + wait(Self.failureBackoff, failures)
        // A token that lasts is refreshed by the next try.
        if let refreshAt { self.refreshAt = max(refreshAt, retryAt) }
    }

    private mutating func take(_ credential: Credential, now: UInt64, wall: Int64) {
        failure = nil
        failures = 0
        retryAt = 0
        claims = TokenClaims(credential.token)
        token = ClientToken(
            credential: credential, generation: (token?.generation ?? 0) + 1, user: claims?.user ?? "")
        expiresAt = claims?.millisecondsLeft(wall: wall).map { now + UInt64(clamping: $0) }
        guard let left = claims?.refreshMilliseconds(wall: wall) else { return refreshAt = nil }
        staleAnswers = left > 0 ? 0 : staleAnswers + 1
        refreshAt = now + (left > 0 ? UInt64(left) : wait(Self.renewalBackoff, staleAnswers))
    }

    private mutating func noteRenewal(now: UInt64) {
        renewals += 1
        retryAt = now + wait(Self.renewalBackoff, renewals)
    }

    private mutating func wait(_ policy: BackoffPolicy, _ attempt: Int) -> UInt64 {
        policy.delayNanoseconds(attempt: attempt - 1, unit: random.nextUnit()) / 1_000_000
    }

    // MARK: Results

    /// What a connection gets after a question: after a failure the last token, if it has not expired.
    func usable(now: UInt64) -> TokenAnswer {
        if let token, failure == nil || !isExpired(now: now) { return .token(token) }
        return refusal
    }

    private func isExpired(now: UInt64) -> Bool { expiresAt.map { now >= $0 } ?? false }

    /// What a call gets whose token was refused.
    var renewed: TokenAnswer {
        if failure == nil, let token { return .token(token) }
        return refusal
    }

    private var refusal: TokenAnswer {
        if let failure { return .failure(failure) }
        return .notAsked
    }
}
