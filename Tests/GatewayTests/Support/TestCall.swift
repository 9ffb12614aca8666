// A front for tests: calls are made and answered in process, on the test's own thread.

import Basics
import Dispatch
import DocumentModel
import DocumentStore
import Gateway
import Synchronization
import Transport

/// What a call was answered with.
struct TestAnswer: Sendable {
    var messages: [[UInt8]] = []
    /// Nil until the call is over.
    var status: StatusCode?
    var text = ""
    /// The service has asked the client to send no more for now.
    var isHeld = false

    var isOK: Bool { status == .ok }
}

/// The "loop" of a test: work handed over from other threads waits here until the test's thread takes it.
final class TestLoop: Sendable {
    private let jobs = Mutex<[@Sendable () -> Void]>([])
    private let waiting = DispatchSemaphore(value: 0)
    private let connection = Mutex(ConnectionBox())

    private struct ConnectionBox: @unchecked Sendable {
        // Sendable: touched on the test's thread only.
        var context: AnyObject?
    }

    /// What the service keeps for the connection, of which a test has one at a time.
    var connectionContext: AnyObject? {
        get { connection.withLock { $0 }.context }
        set { connection.withLock { [box = ConnectionBox(context: newValue)] in $0 = box } }
    }

    func enqueue(_ job: @escaping @Sendable () -> Void) {
        jobs.withLock { $0.append(job) }
        waiting.signal()
    }

    /// Runs what is handed over until `isDone`; gives up after a minute in which nothing came.
    func run(until isDone: () -> Bool) -> Bool {
        while !isDone() {
            guard waiting.wait(timeout: .now() + .seconds(60)) == .success else { return false }
            let job = jobs.withLock { $0.removeFirst() }
            job()
        }
        return true
    }
}

/// A call of a test. Everything but `onLoop` happens on the test's thread.
final class TestCall: ServiceCall {
    let requestIdentifier: RequestIdentifier?
    let principal: Principal
    let method: Transport.Method
    private let loop: TestLoop
    /// Messages of a stream that are taken before the call is given up; nil takes all.
    private let messagesMax: Int?
    /// Messages of a stream after which the client takes nothing until `goOn`; nil pauses nowhere.
    private let pausesAt: Int?
    private let isPausable = Mutex(true)
    private let state = Mutex(TestAnswer())
    private let source = Mutex(SourceBox())

    private let held = Mutex(ContextBox())

    private struct ContextBox: @unchecked Sendable {
        // Sendable: touched on the test's thread only.
        var context: AnyObject?
    }

    private struct SourceBox: @unchecked Sendable {
        // Sendable: touched on the test's thread only.
        var source: (any ResponseSource)?
    }

    init(
        loop: TestLoop, method: Transport.Method, requestIdentifier: RequestIdentifier? = nil, principal: Principal = .trusted,
        messagesMax: Int? = nil, pausesAt: Int? = nil
    ) {
        self.loop = loop
        self.method = method
        self.requestIdentifier = requestIdentifier
        self.principal = principal
        self.messagesMax = messagesMax
        self.pausesAt = pausesAt
    }

    /// Takes messages again.
    func goOn() {
        isPausable.withLock { $0 = false }
        pull()
    }

    func noteTime(in counters: ServiceCounters) {}

    var answer: TestAnswer { state.withLock { $0 } }

    func respond<Failure: Error>(_ write: (inout WireWriter) throws(Failure) -> Void) throws(Failure) {
        var writer = WireWriter()
        try write(&writer)
        let message = writer.copyBytes()
        state.withLock { state in
            precondition(state.status == nil, "a call is answered once")
            state.messages.append(message)
            state.status = .ok
        }
    }

    func fail(_ error: RequestError) { end(error.code, error.message) }

    func stream(_ source: any ResponseSource) {
        self.source.withLock { [box = SourceBox(source: source)] in $0 = box }
        pull()
    }

    func resume() { pull() }

    func holdMessages() { state.withLock { $0.isHeld = true } }
    func releaseMessages() { state.withLock { $0.isHeld = false } }

    /// Stands for the connection.
    var connectionContext: AnyObject? {
        get { loop.connectionContext }
        set { loop.connectionContext = newValue }
    }

    var context: AnyObject? {
        get { held.withLock { $0 }.context }
        set { held.withLock { [box = ContextBox(context: newValue)] in $0 = box } }
    }

    func onLoop(_ body: @escaping @Sendable () -> Void) { loop.enqueue(body) }

    private func end(_ status: StatusCode, _ text: String) {
        state.withLock { state in
            precondition(state.status == nil, "a call is answered once")
            state.status = status
            state.text = text
        }
    }

    /// Asks the source until it ends, waits, or has given what the test wants of it.
    private func pull() {
        guard let source = self.source.withLock({ $0 }).source else { return }
        while true {
            if let pausesAt, isPausable.withLock({ $0 }), answer.messages.count >= pausesAt { return }
            if let messagesMax, answer.messages.count >= messagesMax {
                source.cancelled()
                return end(.cancelled, "the test has seen enough")
            }
            var writer = WireWriter()
            let step = source.next(into: &writer)
            let message = writer.copyBytes()
            switch step {
            case .message: state.withLock { $0.messages.append(message) }
            case .lastMessage:
                state.withLock { $0.messages.append(message) }
                return end(.ok, "")
            case .finished: return end(.ok, "")
            case .failed(let code, let text): return end(code, text)
            case .waiting: return
            }
        }
    }
}
