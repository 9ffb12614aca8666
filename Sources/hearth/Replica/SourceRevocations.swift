// The users whose tokens a replica and its source refuse.
//
//     revoke-user at the replica ──► in force here ──► Admin/RevokeUser at the source ──► its other replicas
//     stream of the source       ──► in force here; what the source lacks is sent to it
//
// So what is revoked while the source is away, or what its backup lacked, is there when it is back.

import Basics
import FirestoreMessages
import HearthClient
import Identity
import Synchronization

/// Thread-safe.
final class SourceRevocations: SharedRevocations {
    let source: String
    private let client: HearthClient
    /// What the present stream has brought.
    private let received = Mutex<Revocations.Moments>([:])

    /// Users of a request.
    private static let usersMax = 256

    init(source: String, _ client: HearthClient) {
        self.source = source
        self.client = client
    }

    /// A stream begins, which brings all that the source has.
    func beginStream() { received.withLock { $0 = [:] } }

    /// The stream has brought these.
    func note(_ moments: Revocations.Moments) { received.withLock { $0.merge(moments, uniquingKeysWith: max) } }

    func news() -> RevocationNews { RevocationNews(received.withLock { $0 }, isWhole: true) }

    /// Waits for the source: not for the threads of tasks.
    func add(_ moments: Revocations.Moments) throws(RequestError) {
        var left = Array(moments)[...]
        while !left.isEmpty {
            let users = Dictionary(uniqueKeysWithValues: left.prefix(Self.usersMax).map { ($0.key, $0.value) })
            do {
                try Replica.wait { [client] in
                    let request = RevokeUserRequest(revocations: Revocations.encode(users))
                    _ = try await client.administer(
                        .adminRevokeUser, request, isRepeatable: true, as: RevokeUserResponse.self)
                }
            } catch {
                let code = (error as? RequestError)?.code ?? .unavailable
                throw RequestError(code, "The source \(source) did not take it: \(ErrorText.describe(error))")
            }
            left = left.dropFirst(users.count)
        }
    }
}
