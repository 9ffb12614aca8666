package import Basics
package import FirestoreMessages

extension HearthClient {
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
