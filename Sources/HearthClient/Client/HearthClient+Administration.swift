package import Basics
package import DocumentModel
package import FirestoreMessages

/// The messages of a source to a replica, in order. Releasing it ends the stream.
package final class FollowMessages: Sendable {
    private let messages: MessageStream

    init(_ messages: MessageStream) { self.messages = messages }

    /// The next message; nil after the last. A cancelled task ends the stream.
    /// - Throws: what ends the stream; `INVALID_ARGUMENT` for a message that cannot be read.
    nonisolated(nonsending) package func next() async throws(RequestError) -> FollowResponse? {
        guard let message = try await messages.next() else { return nil }
        do {
            return try FollowResponse(wire: message.byteSpan)
        } catch {
            throw RequestError(.invalidArgument, "The source sends a message that cannot be read.")
        }
    }
}

extension HearthClient {
    /// Asks a server for its state and its commits.
    package func follow(_ request: FollowRequest) -> FollowMessages {
        FollowMessages(stream(.adminFollow, request.encodedBytes(), options: .standard))
    }

    /// The databases of a project that have documents; those of all projects for `-`.
    nonisolated(nonsending) package func databases(of project: String) async throws(RequestError) -> [DatabaseName] {
        let request = ListDatabasesRequest(parent: "projects/\(project)")
        let reply = try await administer(
            .listDatabases, request, isRepeatable: true, as: ListDatabasesResponse.self)
        return try reply.databases.map { (database) throws(RequestError) in try DatabaseName(database.name) }
    }

    /// Makes a unary call of `hearth.admin.v1`, for those methods that the TCP port serves.
    ///
    /// - Parameter isRepeatable: whether the call may be made again after a failure that leaves its outcome unknown.
    /// - Throws: `UNAUTHENTICATED` or `PERMISSION_DENIED` without the right to administer the server.
    nonisolated(nonsending) package func administer<Reply: FirestoreMessage>(
        _ method: FirestoreMessages.Method, _ request: some FirestoreMessage, isRepeatable: Bool, as type: Reply.Type
    ) async throws(RequestError) -> Reply {
        let kind: CallKind = isRepeatable ? .repeatable : .once
        let bytes = try await call(method, request.encodedBytes(), kind: kind, options: .standard)
        return try Self.decode { try Reply(wire: bytes.span.bytes) }.get()
    }
}
