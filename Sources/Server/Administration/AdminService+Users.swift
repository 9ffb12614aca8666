internal import Basics
internal import Calls
internal import FirestoreMessages
internal import Identity

extension AdminService {
    /// Revokes a user. That writes a file, and at a server of a cluster it waits for the database, so it has a thread.
    func revokeUser(_ call: Call, _ message: RevokeUserRequest) throws {
        try onThread(call) { try $0.revokeUser(message.uid) }
    }
}

extension AdminService.Context {
    fileprivate func revokeUser(_ uid: String) throws(RequestError) -> RevokeUserResponse {
        guard let revocations else {
            throw RequestError(.failedPrecondition, "This server does not keep revocations.")
        }
        let now = Int64(clamping: SystemClock.microseconds() / 1_000_000)
        do throws(RequestError) {
            try revocations.revoke(uid: uid, before: now)
        } catch {
            log(.warning, "user_not_revoked", ["message": error.message])
            throw error
        }
        log(.info, "user_revoked", [:])
        return RevokeUserResponse(before: now, isInCluster: revocations.isShared)
    }
}
