import Authorization
import Basics
import FirestoreService
import Identity

/// The access control of a server that a command starts for itself.
enum TemporaryAccess {
    private static let name = "command"

    /// - Returns: an access control without rules, and the token of its one principal, an admin. Nothing is written to
    ///   a file.
    static func make(_ log: Log) throws -> (Authorization, token: String) {
        var list = PrincipalList()
        let token = try list.addAPIKey(
            to: name, PrincipalList.Grant(role: .admin, scope: Scope(projects: nil)),
            now: SystemClock.wallNanoseconds() / 1_000_000_000)
        let authenticator = Authenticator(
            mode: .closed, users: TokenVerifier([]), principals: try Principals(list.records),
            revocations: Revocations(), accessTokens: AccessTokens())
        return (Authorization(Authorization.State(authenticator: authenticator, ruleset: nil), log: log), token)
    }
}
