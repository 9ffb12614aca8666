internal import Basics
internal import Calls
internal import FirestoreMessages
internal import Identity

extension AdminService {
    /// Revokes a user, or those whom a replica refuses. That writes a file, and it waits for the database of a cluster
    /// or the source of a replica, so it has a thread.
    func revokeUser(_ call: Call, _ message: RevokeUserRequest) throws {
        guard message.uid.isEmpty, !message.revocations.isEmpty else {
            return try onThread(call) { try $0.revoke([Array(message.uid.utf8): $0.revocationMoment]) }
        }
        let moments: Revocations.Moments
        do throws(PrincipalFault) {
            moments = try Revocations.decode(message.revocations)
        } catch {
            throw RequestError.invalidArgument("\(error)")
        }
        try onThread(call) { try $0.revoke(moments) }
    }
}

extension AdminService.Context {
    /// The moment of a revocation that is made now. The clock of this machine may be late, and other servers admit
    /// tokens by theirs: the time of a server that this one follows counts if it is later.
    fileprivate var revocationMoment: Int64 {
        let times = stores.map(\.store.latestLeaderTime)
        return Revocations.moment(ofOneMadeAt: times.reduce(SystemClock.microseconds(), max))
    }

    fileprivate func revoke(
        _ moments: Revocations.Moments
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
            before: moments.values.max() ?? 0, isInCluster: revocations.isShared && revocations.source.isEmpty,
            source: revocations.source)
    }
}
