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
    func `A user is revoked over the socket, and several are by a replica over the TCP port`() throws {
        let revocations = Revocations()
        let live = try LiveDatabaseServer { $0.revocations = RevocationKeeper(revocations) }
        let signIn = Int64(SystemClock.microseconds() / 1_000_000)
        let answer = try AdminClient.revoke(uid: "ada", directory: live.directory.path(of: "data"))
        // Also if the revocation was made in the same second.
        expect(revocations.isRevoked(uid: "ada", signedInAt: signIn))
        expect(!answer.isInCluster && answer.source.isEmpty)
        expect(revocations.isRevoked(uid: "ada", signedInAt: 1) && !revocations.isRevoked(uid: "eve", signedInAt: 1))
        expect(!revocations.isRevoked(uid: "ada", signedInAt: Int64.max))
        #expect(throws: AdminClient.Failure.self) {
            try AdminClient.revoke(uid: "", directory: live.directory.path(of: "data"))
        }
        func send(_ bytes: [UInt8]) -> StatusCode {
            live.call(.adminRevokeUser, RevokeUserRequest(revocations: bytes).encodedBytes()).outcome.code
        }
        expectEqual(send(Revocations.encode([Array("eve".utf8): 100, Array("bob".utf8): 200])), .ok)
        expect(revocations.isRevoked(uid: "eve", signedInAt: 99))
        expect(!revocations.isRevoked(uid: "eve", signedInAt: 100))
        expect(revocations.isRevoked(uid: "bob", signedInAt: 199))
        expectEqual(send([1, 2, 3]), .invalidArgument)
        expectEqual(send(Revocations.encode([[]: 1])), .invalidArgument)
        expectEqual(send(Revocations.encode([[0xFF]: 1])), .invalidArgument)
        let plain = try LiveDatabaseServer()
        let refusal = #expect(throws: AdminClient.Failure.self) {
            try AdminClient.revoke(uid: "ada", directory: plain.directory.path(of: "data"))
        }
        expectEqual(refusal?.description.contains("does not keep revocations"), true)
    }
}
