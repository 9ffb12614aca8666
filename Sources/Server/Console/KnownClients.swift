internal import HTTPProtocols
internal import Synchronization

/// Which clients have called since the start, for the lights of the console's first page. Thread-safe.
final class KnownClients: Sendable {
    enum Kind: String, Sendable {
        case swift, web, python, node, java, go, rest
    }

    /// Calls over HTTP, connections over the other protocols.
    private let calls = Mutex<[Kind: UInt64]>([:])

    /// What the console itself writes into the field `X-Goog-Api-Client`.
    static let consoleName = "hearth-console"

    /// Takes the `user-agent` of a gRPC client, or `hearth` for the native protocol.
    func note(agent: String) {
        let kinds: [(prefix: String, kind: Kind)] = [
            ("hearth", .swift), ("grpc-python", .python), ("grpc-node", .node), ("grpc-java", .java), ("grpc-go", .go),
        ]
        guard let known = kinds.first(where: { agent.contains($0.prefix) }) else { return }
        note(known.kind)
    }

    /// Takes a request over HTTP; those of the console do not count.
    ///
    /// - Parameter kind: nil if the request's fields tell.
    func note(_ head: HTTPHead, kind: Kind? = nil) {
        let name = head.value(of: "x-goog-api-client") ?? ""
        if name == Self.consoleName { return }
        note(kind ?? (name.contains("gl-js") ? .web : .rest))
    }

    private func note(_ kind: Kind) { calls.withLock { $0[kind, default: 0] &+= 1 } }

    /// By the names of clients.
    var counts: [String: UInt64] {
        calls.withLock { Dictionary(uniqueKeysWithValues: $0.map { ($0.key.rawValue, $0.value) }) }
    }
}
