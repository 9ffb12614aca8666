// The client of another Firestore: the calls of `HearthClient` over gRPC.

import Calls
import DocumentModel
import EventLoops
import FirestoreMessages
import HTTPProtocols
import HearthClient

/// Opens gRPC connections for a client.
struct GRPCTransport: ClientTransport {
    let configuration: GRPCClientConfiguration

    /// - Parameters:
    ///   - configuration: of the connections, without metadata.
    ///   - database: what all calls are about. Endpoints of Google need it in the metadata to route a call.
    init(_ configuration: GRPCClientConfiguration, for database: DatabaseName) {
        var configuration = configuration
        configuration.metadata += [
            ("google-cloud-resource-prefix", "\(database)"),
            ("x-goog-request-params", "project_id=\(database.project)&database_id=\(database.database)"),
        ]
        self.configuration = configuration
    }

    func connect(
        to host: String, port: UInt16, on loop: EventLoop, token: String,
        onEvent: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportConnection {
        var configuration = configuration
        configuration.token = token
        let connection = GRPCClientConnection.connect(to: host, port: port, on: loop, configuration) { event in
            switch event {
            case .ready: onEvent(.ready)
            case .goingAway: onEvent(.goingAway)
            case .closed(let reason): onEvent(.closed(reason))
            }
        }
        return GRPCTransportConnection(connection)
    }
}

private final class GRPCTransportConnection: TransportConnection {
    private let connection: GRPCClientConnection

    init(_ connection: GRPCClientConnection) { self.connection = connection }

    func show(token: String) { connection.show(token: token) }

    func start(
        _ method: Method, _ request: [UInt8], isComplete: Bool, deadlineMilliseconds: UInt32?,
        handler: any StartedCallHandler & Sendable
    ) -> any StartedCall {
        connection.start(
            method.paths[0], request, isComplete: isComplete, deadlineMilliseconds: deadlineMilliseconds,
            handler: handler)
    }

    func close() { connection.close() }
}
