// Users whom operators revoke at a running server.

import Authorization
import AuthorizationTestSupport
import Basics
import FirestoreMessages
import FirestoreService
import Identity
import Server
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct UserAdminTests {
    @Test
    func `A user is revoked over the socket, and not over the TCP port`() throws {
        let revocations = Revocations()
        let live = try LiveDatabaseServer { $0.revocations = RevocationKeeper(revocations) }
        #expect(try !AdminClient.revoke(uid: "ada", directory: live.directory.path(of: "data")))
        #expect(revocations.isRevoked(uid: "ada", signedInAt: 1) && !revocations.isRevoked(uid: "eve", signedInAt: 1))
        #expect(!revocations.isRevoked(uid: "ada", signedInAt: Int64.max))
        #expect(throws: AdminClient.Failure.self) {
            try AdminClient.revoke(uid: "", directory: live.directory.path(of: "data"))
        }
        let request = RevokeUserRequest(uid: "eve").encodedBytes()
        #expect(live.call(.adminRevokeUser, request).outcome.code == .unimplemented)
        #expect(!revocations.isRevoked(uid: "eve", signedInAt: 1))
        let plain = try LiveDatabaseServer()
        let refusal = #expect(throws: AdminClient.Failure.self) {
            try AdminClient.revoke(uid: "ada", directory: plain.directory.path(of: "data"))
        }
        #expect(refusal?.description.contains("does not keep revocations") == true)
    }
}
