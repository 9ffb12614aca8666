// The front for calls that come over the transport's connections: hands them to the loop's service.

package import Basics
package import DocumentModel
package import DocumentStore
package import Transport

/// A call of the transport, whatever protocol its connection speaks.
package struct CarriedCall: ServiceCall {
    private let call: Call
    private let requestID: RequestID?
    package let method: Method
    /// When the turn began in which the call came, in nanoseconds; 0 for a call that lasts as long as its client likes.
    private let startedAt: UInt64
    package let isAlone: Bool

    @inline(__always)
    init(_ call: Call, _ head: RequestHead, isAlone: Bool = false) {
        self.call = call
        requestID = head.requestID
        method = head.method
        startedAt = head.method.shape == .bidirectional ? 0 : call.loop.turnNanoseconds
        self.isAlone = isAlone
    }

    /// A call of several messages, after the first.
    init(_ call: Call) {
        self.call = call
        requestID = nil
        method = .write
        startedAt = 0
        isAlone = false
    }

    @inline(__always)
    package func noteTime(in counters: ServiceCounters) {
        guard startedAt != 0 else { return }
        let now = call.loop.turnNanoseconds
        if now == startedAt {
            counters.callAnsweredAtOnce(method, on: call.loop)
        } else {
            counters.callTook(method, nanoseconds: now &- startedAt)
        }
    }

    package var requestIdentifier: RequestIdentifier? {
        requestID.map {
            RequestIdentifier(
                sessionHigh: $0.sessionHigh, sessionLow: $0.sessionLow, sequence: $0.sequence,
                oldestPending: $0.oldestPending)
        }
    }

    package var principal: Principal {
        call.carriesCredentials ? Principal(authorization: call.authorization) : .trusted
    }

    @inline(__always)
    package func respond<Failure: Error>(
        _ write: (inout WireWriter) throws(Failure) -> Void
    ) throws(Failure) {
        try call.respond(write)
    }

    package func fail(_ error: RequestError) { call.fail(error) }
    package func stream(_ source: any ResponseSource) { call.stream(source) }
    package func resume() { call.resume() }
    package func holdMessages() { call.holdMessages() }
    package func releaseMessages() { call.releaseMessages() }

    package var context: AnyObject? {
        get { call.context }
        nonmutating set { call.context = newValue }
    }

    package var connectionContext: AnyObject? {
        get { call.carrier.connectionContext }
        nonmutating set { call.carrier.connectionContext = newValue }
    }

    package func onLoop(_ body: @escaping @Sendable () -> Void) { call.loop.execute(body) }
}

/// The handler of one loop: Firestore, and the services that gRPC's tools ask for.
package final class FrameFront: ServiceHandler {
    private let service: FirestoreService<CarriedCall>
    private var solitude = Solitude()
    private let health: HealthService
    private let reflection: ReflectionService

    package init(_ service: FirestoreService<CarriedCall>) {
        self.service = service
        health = HealthService(counters: service.counters)
        reflection = ReflectionService(counters: service.counters)
    }

    /// The server drains: calls that last as long as their clients like are let go.
    func stopServing() {
        health.stopServing()
        reflection.stopServing()
        service.stopServing()
    }

    package func begin(_ call: Call, _ head: RequestHead, payload: RawSpan) {
        guard head.method.service == .firestore else { return beginOther(call, head, payload) }
        let isAlone = solitude.note(call)
        service.begin(CarriedCall(call, head, isAlone: isAlone), head.method, payload)
        if head.isComplete, head.method.shape == .bidirectional { halfClosed(call) }
    }

    /// Begins a call of a service beside Firestore.
    private func beginOther(_ call: Call, _ head: RequestHead, _ payload: RawSpan) {
        let carried = CarriedCall(call, head)
        service.counters.callsStarted.add()
        do throws(RequestError) {
            switch head.method {
            case .healthCheck:
                let answer = try health.check(payload)
                service.succeed(carried) { $0.append(answer) }
            case .healthWatch: try health.watch(call, payload)
            case .serverReflectionInfo:
                reflection.begin(call, payload)
                if head.isComplete { halfClosed(call) }
            default: throw RequestError(.unimplemented, "\(head.method.name) is not supported")
            }
        } catch {
            service.fail(carried, head.method, error)
        }
    }

    package func message(_ call: Call, payload: RawSpan) {
        if let stream = call.context as? ReflectionStream { return stream.take(payload) }
        service.message(CarriedCall(call), payload)
    }

    package func halfClosed(_ call: Call) {
        if let stream = call.context as? ReflectionStream { return stream.halfClosed() }
        service.halfClosed(CarriedCall(call))
    }

    package func loopWillWait() {
        solitude.newRound()
        service.loopWillWait()
    }

    package func cancelled(_ call: Call, _ reason: CancellationReason, context: AnyObject?) {
        health.forget(call)
        service.counters.callsAbandoned.add()
    }
}

/// Tells whether one client has a loop to itself and makes one call at a time.
private struct Solitude {
    /// How long nobody else may have called.
    private static let milliseconds: UInt64 = 10

    private var last: ObjectIdentifier?
    private var since: UInt64 = 0
    private var hasCalls = false

    /// Notes a call, and says whether its client has been alone for a while.
    mutating func note(_ call: Call) -> Bool {
        let carrier = ObjectIdentifier(call.carrier)
        let now = call.loop.nowMilliseconds
        // A second call before the loop waits: another client, or one that sends many at once.
        if hasCalls || last != carrier {
            last = carrier
            since = now
        }
        hasCalls = true
        return now >= since + Self.milliseconds
    }

    /// The loop has dealt with all that had come.
    mutating func newRound() { hasCalls = false }
}
