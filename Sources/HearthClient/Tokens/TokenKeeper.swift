import Basics
import DocumentModel
import EventLoops
import NativeProtocol

/// The token of a client's calls: asks the provider for it, keeps it, and renews it.
///
///     pools ── token, renew ──▶ TokenState ──▶ provider, one question at a time
///       ▲                           │
///       └── answers, new tokens ────┘
///
/// No text has a part of a token. Confined to the thread of a loop, except for the methods that say otherwise.
final class TokenKeeper: @unchecked Sendable {
    // Unchecked: references are passed between threads, the variables are touched on the loop's thread only.

    /// Takes an answer, on the thread of the keeper's loop.
    typealias Completion = @Sendable (TokenAnswer) -> Void

    private enum Waiter {
        case connection(Completion)
        case call(Completion)
    }

    private let loop: EventLoop
    private let provider: HearthClient.TokenProvider
    private let timeoutMilliseconds: UInt64
    private let userChanged: (@Sendable (_ user: String?) -> Void)?
    private var state = TokenState(jitterSeed: .random(in: 0 ... .max))
    private var waiters: [Waiter] = []
    private var observers: [@Sendable (ClientToken) -> Void] = []
    private var task: Task<Void, Never>?
    /// Numbers the questions.
    private var questions: UInt64 = 0
    private var timeout: EventLoop.Timer?
    private var refresh: EventLoop.Timer?
    /// The user of the last token; nil before the first.
    private var user: UTF8Text??
    private var isClosed = false

    init(
        _ provider: @escaping HearthClient.TokenProvider, _ configuration: HearthClient.Configuration,
        on loop: EventLoop
    ) {
        self.provider = provider
        self.loop = loop
        timeoutMilliseconds = max(1, configuration.tokenTimeout.nanoseconds / 1_000_000)
        userChanged = configuration.userChanged
    }

    // MARK: From any thread

    /// Has `body` called with each token that differs from the one before, on the loop's thread, before those get it
    /// who wait for it.
    func observe(_ body: @escaping @Sendable (ClientToken) -> Void) { loop.execute { self.observers.append(body) } }

    /// The token for a new connection.
    func token(_ completion: @escaping Completion) {
        loop.execute { self.answer(self.state.need(now: self.loop.nowMilliseconds), .connection(completion)) }
    }

    /// A token instead of one that the server has refused.
    ///
    /// - Parameter generation: of the token that the call had; 0 for none.
    func renew(after generation: UInt64, _ completion: @escaping Completion) {
        loop.execute {
            self.answer(self.state.renew(after: generation, now: self.loop.nowMilliseconds), .call(completion))
        }
    }

    /// The program has another user, or may have: asks the provider.
    func changed() {
        loop.execute {
            self.state.changed()
            self.askIfDue()
        }
    }

    /// Asks nothing any more, and cancels a question.
    func close() {
        loop.execute {
            self.isClosed = true
            self.task?.cancel()
            self.task = nil
            self.observers = []
            self.stopTimers()
            self.waiters = []
        }
    }

    // MARK: Questions

    private func answer(_ need: TokenState.Need, _ waiter: Waiter) {
        switch (need, waiter) {
        case (.have(let answer), .connection(let completion)), (.have(let answer), .call(let completion)):
            completion(answer)
        case (.wait, _):
            if isClosed { return }
            waiters.append(waiter)
            askIfDue()
        }
    }

    private func askIfDue() {
        guard let force = state.takeQuestion(), !isClosed else { return }
        questions += 1
        let number = questions
        task = Task { [provider, weak self] in
            let answer = await Self.ask(provider, force)
            guard let self else { return }
            loop.execute { self.answered(answer, number) }
        }
        if let timeout { loop.cancel(timeout) }
        timeout = loop.schedule(afterMilliseconds: timeoutMilliseconds) { [weak self] in self?.timedOut(number) }
    }

    private static func ask(
        _ provider: HearthClient.TokenProvider, _ force: Bool
    ) async -> Result<Credential, RequestError> {
        do {
            guard let credential = Credential(try await provider(force) ?? "") else {
                return failure("it did not return a token. \(HearthClient.Configuration.tokenRule)")
            }
            return .success(credential)
        } catch let error as RequestError {
            return failure(error.message)
        } catch {
            return failure("\(error)")
        }
    }

    private static func failure(_ text: String) -> Result<Credential, RequestError> {
        .failure(RequestError(.unauthenticated, "the token provider failed: \(text)"))
    }

    private func timedOut(_ number: UInt64) {
        guard number == questions, !isClosed else { return }
        timeout = nil
        let text = "the token provider has not answered within \(timeoutMilliseconds) ms"
        state.timedOut(RequestError(.unauthenticated, text))
        resumeWaiters()
    }

    private func answered(_ answer: Result<Credential, RequestError>, _ number: UInt64) {
        guard number == questions, !isClosed else { return }
        task = nil
        let before = state.token?.credential
        let isDone = state.answered(
            answer, now: loop.nowMilliseconds, wall: SystemClock.wallNanoseconds() / 1_000_000)
        if let token = state.token, token.credential != before { publish(token) }
        stopTimers()
        if isDone { resumeWaiters() }
        armRefresh()
        askIfDue()
    }

    private func publish(_ token: ClientToken) {
        for body in observers { body(token) }
        let next = token.user.isEmpty ? nil : UTF8Text(token.user)
        guard user != .some(next) else { return }
        user = .some(next)
        userChanged?(next?.string)
    }

    private func resumeWaiters() {
        let ready = waiters
        waiters = []
        for waiter in ready {
            switch waiter {
            case .connection(let completion): completion(state.usable(now: loop.nowMilliseconds))
            case .call(let completion): completion(state.renewed)
            }
        }
    }

    // MARK: Time

    private func armRefresh() {
        guard let refreshAt = state.refreshAt else { return }
        let now = loop.nowMilliseconds
        refresh = loop.schedule(afterMilliseconds: refreshAt > now ? refreshAt - now : 0) { [weak self] in
            guard let self, !isClosed else { return }
            refresh = nil
            state.refresh(now: loop.nowMilliseconds)
            askIfDue()
        }
    }

    private func stopTimers() {
        if let timer = timeout.take() { loop.cancel(timer) }
        if let timer = refresh.take() { loop.cancel(timer) }
    }
}
