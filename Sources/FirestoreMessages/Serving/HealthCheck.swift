// The messages of `grpc.health.v1.Health`.

internal import CFirestoreProto
internal import DocumentModel

/// A question for the health of a service.
package struct HealthCheckRequest: TableMessage, Equatable, Sendable {
    /// The full name of a service; empty asks for the server as a whole.
    package var service: String

    package init(service: String) { self.service = service }

    static let table = unsafe MessageTable(
        HealthCheckRequest(service: ""), held__health__health_check_request__init,
        grpc__health__v1__health_check_request__init,
        [.text(\.service, \.service)])
}

/// The health of a service.
package struct HealthCheckResponse: TableMessage, Equatable, Sendable {
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
    static let table = unsafe MessageTable(
        HealthCheckResponse(status: .unknown), held__health__health_check_response__init,
        grpc__health__v1__health_check_response__init,
        [.enumeration(\.status, \.status)])
}
