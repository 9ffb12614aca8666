// The messages of `grpc.health.v1.Health`.

package import DocumentModel

/// A question for the health of a service.
package struct HealthCheckRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.Health.HealthCheckRequest

    /// The full name of a service; empty asks for the server as a whole.
    package var service: String

    package init(service: String) { self.service = service }

    package init(wire: RawSpan) throws {
        self.init(service: "")
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == Field.service { service = try reader.string(tag) } else { try reader.skip(tag) }
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(Field.service, string: service)
    }
}

/// The health of a service.
package struct HealthCheckResponse: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.Health.HealthCheckResponse

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

    /// A number that is no status reads as `.unknown`.
    package init(wire: RawSpan) throws {
        self.init(status: .unknown)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            guard tag.fieldNumber == Field.status else {
                try reader.skip(tag)
                continue
            }
            status = UInt8(exactly: try reader.int32(tag)).flatMap(ServingStatus.init(rawValue:)) ?? .unknown
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(Field.status, int64: Int64(status.rawValue))
    }
}
