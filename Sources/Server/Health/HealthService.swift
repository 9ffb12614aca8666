// grpc.health.v1.Health: load balancers and supervisors ask it whether they may send requests.

internal import Basics
internal import Calls
internal import DocumentModel
internal import FirestoreMessages
internal import FirestoreService

/// The health of the server as a loop reports it: serving from its first call until the server drains. Confined to the
/// loop.
final class HealthService {
    fileprivate typealias Status = HealthCheckResponse.ServingStatus

    private static let known: Set<String> = [
        "", "google.firestore.v1.Firestore", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ]

    private let counters: ServiceCounters
    private let streams: LongLivedStreams

    init(counters: ServiceCounters, streams: LongLivedStreams) {
        self.counters = counters
        self.streams = streams
    }

    /// The answer to a Check.
    func check(_ request: RawSpan) throws(RequestError) -> [UInt8] {
        let status = try status(request)
        if status == .serviceUnknown { throw RequestError(.notFound, "unknown service") }
        return HealthCheckResponse(status: status).encodedBytes()
    }

    /// Sends the status now, and again when it changes: when the server drains, which also ends the call.
    func watch(_ call: Call, _ request: RawSpan) throws(RequestError) {
        let watch = HealthWatch(call, of: self, try status(request))
        call.stream(watch)
        streams.insert(watch)
    }

    /// - Parameter code: nil if the client gave up.
    fileprivate func ended(_ watch: HealthWatch, _ code: StatusCode?) {
        streams.remove(watch)
        if let code { counters.callEnded(Method.healthWatch.rpc, code) }
    }

    private func status(_ request: RawSpan) throws(RequestError) -> Status {
        guard let message = try? HealthCheckRequest(wire: request) else {
            throw .invalidArgument("the request is malformed")
        }
        guard Self.known.contains(message.service) else { return .serviceUnknown }
        return streams.isServing ? .serving : .notServing
    }
}

/// One call of Watch. Confined to the loop.
private final class HealthWatch: ResponseSource, LongLivedStream {
    private let call: Call
    private unowned let service: HealthService
    private let status: HealthService.Status
    /// Not sent yet.
    private var news: HealthService.Status?
    private var isServing = true

    init(_ call: Call, of service: HealthService, _ status: HealthService.Status) {
        self.call = call
        self.service = service
        self.status = status
        news = status
    }

    func stopServing() {
        isServing = false
        if status == .serving { news = .notServing }
        call.resume()
    }

    func next(into output: inout ByteBuffer) -> SourceStep {
        if let status = news.take() {
            HealthCheckResponse(status: status).encode(into: &output)
            return .message
        }
        if isServing { return .waiting }
        service.ended(self, .unavailable)
        return .failed(.unavailable, "the server is draining")
    }

    func cancelled() { service.ended(self, nil) }
}
