// grpc.health.v1.Health: tells load balancers and supervisors whether requests may be sent here.

internal import Basics
internal import DocumentModel
internal import FirestoreMessages
internal import Transport

/// The health of the server as one loop tells it: serving from its first call until the server drains. Confined to the loop.
final class HealthService {
    private typealias Status = HealthCheckResponse.ServingStatus

    private static let known: Set<String> = [
        "", "google.firestore.v1.Firestore", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ]

    private let counters: ServiceCounters
    private var isServing = true
    /// Calls of Watch for services that there are. Those for others will never hear anything new.
    private var watchers: Set<Call> = []

    init(counters: ServiceCounters) {
        self.counters = counters
    }

    /// The answer to a Check.
    func check(_ request: RawSpan) throws(RequestError) -> [UInt8] {
        let status = try status(request)
        if status == .serviceUnknown { throw RequestError(.notFound, "unknown service") }
        return HealthCheckResponse(status: status).encodedBytes()
    }

    func watch(_ call: Call, _ request: RawSpan) throws(RequestError) {
        let status = try status(request)
        call.send { HealthCheckResponse(status: status).encode(into: &$0) }
        if status == .serving { watchers.insert(call) }
        if status == .notServing { end(call) }
    }

    private func end(_ call: Call) {
        call.fail(.unavailable, "the server is draining")
        counters.callEnded(.healthWatch, .unavailable)
    }

    /// A call is over; harmless for one that was never watched.
    func forget(_ call: Call) {
        guard !watchers.isEmpty else { return }
        watchers.remove(call)
    }

    /// The server drains: watchers are told so and let go, since they would keep it from ending.
    func stopServing() {
        isServing = false
        let told = watchers
        watchers = []
        for call in told {
            call.send { HealthCheckResponse(status: .notServing).encode(into: &$0) }
            end(call)
        }
    }

    private func status(_ request: RawSpan) throws(RequestError) -> Status {
        guard let message = try? HealthCheckRequest(wire: request) else {
            throw .invalidArgument("the request is malformed")
        }
        guard Self.known.contains(message.service) else { return .serviceUnknown }
        return isServing ? .serving : .notServing
    }
}
