internal import Basics
internal import Calls
internal import FirestoreMessages
internal import Identity

extension AdminService {
    /// Revokes a user, or those whom a replica refuses. That writes a file, and it waits for the database of a cluster
    /// or the source of a replica, so it has a thread.
    func revokeUser(_ call: Call, _ message: RevokeUserRequest) throws {
        let moment = Revocations.moment(ofOneMadeAt: SystemClock.microseconds())
        guard message.uid.isEmpty, !message.revocations.isEmpty else {
            return try onThread(call) { try $0.revoke([Array(message.uid.utf8): moment], moment) }
        }
        let moments: Revocations.Moments
        do throws(PrincipalFault) {
            moments = try Revocations.decode(message.revocations)
        } catch {
            throw RequestError.invalidArgument("\(error)")
        }
        try onThread(call) { try $0.revoke(moments, moment) }
    }
}

extension AdminService.Context {
    fileprivate func revoke(
        _ moments: Revocations.Moments, _ moment: Int64
    ) throws(RequestError) -> RevokeUserResponse {
        guard let revocations else {
            throw RequestError(.failedPrecondition, "This server does not keep revocations.")
        }
        do throws(RequestError) {
            try revocations.revoke(moments)
        } catch {
            log(.warning, "user_not_revoked", ["message": error.message])
            throw error
        }
        log(.info, "user_revoked", [:])
        return RevokeUserResponse(
            before: moment, isInCluster: revocations.isShared && revocations.source.isEmpty, source: revocations.source)
    }
}
