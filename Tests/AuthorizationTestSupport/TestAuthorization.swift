// Access controls for tests, and credentials for them.

package import Authorization
import Basics
package import FirestoreService
package import Identity
package import SecurityRules
import Synchronization

package enum TestAuthorization {
    /// An access control.
    ///
    /// - Parameters:
    ///   - rules: the text of `match` blocks within a database's documents; nil for none.
    ///   - mode: the emulator's accepts what ``token(_:claims:)`` makes.
    ///   - records: principals.
    ///   - rates: how often callers may ask.
    package static func make(
        _ rules: String?, mode: SecurityMode = .emulator, records: [PrincipalRecord] = [],
        rates: CallerRates = CallerRates(), log: Log = Log(level: .error) { _ in }
    ) throws -> Authorization {
        Authorization(
            Authorization.State(
                authenticator: try authenticator(mode: mode, records: records), ruleset: try rules.map(ruleset)),
            rates: rates, log: log)
    }

    package static func authenticator(
        mode: SecurityMode = .emulator, records: [PrincipalRecord] = [], revocations: Revocations = Revocations()
    ) throws -> Authenticator {
        Authenticator(
            mode: mode, users: TokenVerifier([]), principals: try Principals(records), revocations: revocations,
            accessTokens: AccessTokens())
    }

    /// - Parameter blocks: `match` blocks within a database's documents.
    package static func ruleset(_ blocks: String) throws -> Ruleset {
        try Ruleset(
            """
            rules_version = '2';
            service cloud.firestore { match /databases/{database}/documents {
            \(blocks)
            } }
            """)
    }

    /// The field `Authorization` of a user, with a token that nobody has signed.
    ///
    /// - Parameter claims: further members of the token, as JSON without braces.
    package static func user(_ uid: String, claims: String = "") -> String {
        let now = SystemClock.microseconds() / 1_000_000
        let rest = claims.isEmpty ? "" : ", \(claims)"
        let body = "{\"sub\":\"\(uid)\",\"iat\":\(now),\"exp\":\(now + 3_600)\(rest)}"
        let parts = ["{\"alg\":\"none\"}", body].map { Base64URL.encode(Array($0.utf8)) }
        return "Bearer \(parts.joined(separator: "."))."
    }
}

/// Collects the lines of a log. Thread-safe.
package final class TestLog: Sendable {
    private let collected = Mutex<[String]>([])

    package init() {}

    package var lines: [String] { collected.withLock { $0 } }
    package var log: Log { Log(level: .debug) { [self] line in collected.withLock { $0.append(line) } } }
}
