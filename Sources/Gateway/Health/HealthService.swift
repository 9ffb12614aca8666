// grpc.health.v1.Health: tells load balancers and supervisors whether requests may be sent here.
// HealthCheckRequest: 1 service. HealthCheckResponse: 1 status.

internal import DocumentModel
internal import Transport

/// The health of the server as one loop tells it: serving from its first call until the server drains. Confined to the loop.
package final class HealthService {
    /// The numbers of `HealthCheckResponse.ServingStatus`.
    private enum Status: UInt64 {
        case serving = 1
        case notServing = 2
        case serviceUnknown = 3
    }

    private static let known: Set<String> = [
        "", "google.firestore.v1.Firestore", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ]

    private var isServing = true
    /// Calls of Watch for services that there are. Those for others will never hear anything new.
    private var watchers: Set<Call> = []

    package init() {}

    func check(_ call: Call, _ request: RawSpan) {
        switch Result(catching: { try status(request) }) {
        case .success(.serviceUnknown): call.fail(.notFound, "unknown service")
        case .success(let status): call.respond { Self.append(status, to: &$0) }
        case .failure: call.fail(.invalidArgument, "the request is malformed")
        }
    }

    func watch(_ call: Call, _ request: RawSpan) {
        guard let status = try? status(request) else { return call.fail(.invalidArgument, "the request is malformed") }
        call.send { Self.append(status, to: &$0) }
        if status == .serving { watchers.insert(call) }
        if status == .notServing { call.fail(.unavailable, "the server is draining") }
    }

    /// A call is over; harmless for one that was never watched.
    func forget(_ call: Call) {
        guard !watchers.isEmpty else { return }
        watchers.remove(call)
    }

    /// The server drains: watchers are told so and let go, since they would keep it from ending.
    package func stopServing() {
        isServing = false
        let told = watchers
        watchers = []
        for call in told {
            call.send { Self.append(.notServing, to: &$0) }
            call.fail(.unavailable, "the server is draining")
        }
    }

    private func status(_ request: RawSpan) throws -> Status {
        var service = ""
        var reader = WireReader(request)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == 1 { service = try reader.string(tag) } else { try reader.skip(tag) }
        }
        guard Self.known.contains(service) else { return .serviceUnknown }
        return isServing ? .serving : .notServing
    }

    private static func append(_ status: Status, to writer: inout WireWriter) {
        writer.appendField(1, varint: status.rawValue)
    }
}
