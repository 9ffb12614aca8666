// The messages of `grpc.health.v1.Health`.

package import Basics
internal import CFirestoreProto
internal import DocumentModel

/// A question for the health of a service.
package struct HealthCheckRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__health__health_check_request__init, grpc__health__v1__health_check_request__init)

    /// The full name of a service; empty asks for the server as a whole.
    package var service: String

    package init(service: String) { self.service = service }

    package init(wire: RawSpan) throws {
        service = try unsafe Self.layout.read(wire) { unsafe $0.service.text }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in unsafe message.service = arena.bytes(service) }
    }
}

/// The health of a service.
package struct HealthCheckResponse: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__health__health_check_response__init, grpc__health__v1__health_check_response__init)

    /// The numbers of `HealthCheckResponse.ServingStatus`.
    package enum ServingStatus: UInt8, Sendable {
        case unknown = 0
        case serving = 1
        case notServing = 2
        /// Only in the answers of `Watch`.
        case serviceUnknown = 3
    }

    package var status: ServingStatus

    package init(status: ServingStatus) { self.status = status }

    /// An unknown number reads as `.unknown`.
    package init(wire: RawSpan) throws {
        status = try unsafe Self.layout.read(wire) { message in
            UInt8(exactly: unsafe message.status.rawValue).flatMap(ServingStatus.init(rawValue:)) ?? .unknown
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, _ in
            unsafe message.status = Held__Health__HealthCheckResponse__ServingStatus(rawValue: UInt32(status.rawValue))
        }
    }
}
