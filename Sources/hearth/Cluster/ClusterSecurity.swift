// What the servers of a cluster have in common about security, and how a server takes it over: before it serves, and
// rules and revocations once a second from then on.

import Authorization
import Basics
import FirestoreService
import Identity
import PostgreSQLLog

/// Thread-safe.
final class ClusterSecurity: Sendable {
    let rules: ClusterRules
    let revocations: ClusterRevocations
    private let home: HomeDatabase
    /// Whether the home database could not be reached when the server began.
    private let isAway: Bool
    private let log: Log
    private let thread = PacedThread()

    private static let intervalMilliseconds: UInt64 = 1_000

    /// - Parameters:
    ///   - address: of the home database.
    ///   - isAway: whether it cannot be reached, and this server had its rules and revocations before.
    init(address: String, isAway: Bool = false, log: Log) {
        home = HomeDatabase(address: address)
        rules = ClusterRules(home: home)
        revocations = ClusterRevocations(home)
        self.isAway = isAway
        self.log = log
    }

    /// Takes over the rules of the cluster before this server decides anything by rules. Those of its directory become
    /// those of a cluster that has none. Those that the directory had before stay in force while the database is away.
    /// One that cannot be reached only now is waited for.
    ///
    /// - Throws: a `CommandFailure` if the database cannot be used, or the rules have an error.
    func join(_ history: RulesHistory) throws {
        if isAway { return reportAway("rules_not_taken", "the rules of before are in force") }
        do throws(RequestError) {
            try patiently { () throws(RequestError) in try RulesKeeper(history, shared: rules).joinShared() }
        } catch {
            throw CommandFailure("the rules of the cluster cannot be taken over: \(error.message)")
        }
    }

    /// Takes over the revocations of the cluster before this server verifies any token, and adds those of its
    /// directory. Those that the directory had before stay in force while the database is away. One that cannot be
    /// reached only now is waited for.
    ///
    /// - Throws: a `CommandFailure` if the database cannot be used, or they cannot be kept.
    func join(_ keeper: RevocationKeeper) throws {
        if isAway { return reportAway("revocations_not_taken", "the revocations of before are in force") }
        do throws(RequestError) {
            try patiently { () throws(RequestError) in _ = try keeper.takeShared() }
        } catch {
            throw CommandFailure("the revocations of the cluster cannot be taken over: \(error.message)")
        }
    }

    /// Takes over the secret of access tokens, which the first server makes, before this server gives or reads one. So
    /// each server accepts those of the others. While the database is away the secret of before is used.
    ///
    /// - Throws: a `CommandFailure` if the database cannot be reached, or the secret cannot be kept.
    func joinSecret(of identity: IdentityDirectory) throws {
        if isAway { return }
        do {
            var secret: [UInt8] = []
            try patiently { () throws(RequestError) in
                try home.run(SecretsTable.entering(AccessTokens.makeSecret(), as: Self.secretName))
                secret = try home.run(SecretsTable.secret(Self.secretName)).first?.bytes(0) ?? []
            }
            try identity.keep(accessTokenSecret: secret)
        } catch {
            throw CommandFailure("the secret of access tokens cannot be taken over: \(ErrorText.describe(error))")
        }
    }

    private static let secretName = "access-tokens"

    /// Does it again while the home database cannot be reached: it answered a moment ago, and may be starting again.
    private func patiently(_ body: () throws(RequestError) -> Void) throws(RequestError) {
        var isReported = false
        while true {
            do throws(RequestError) {
                return try body()
            } catch {
                guard home.isConnectionLost, !Shutdown.isRequested else { throw error }
                if !isReported { log(.warning, "cluster_waiting", ["message": error.message]) }
                isReported = true
                SystemThread.sleep(microseconds: 200_000)
            }
        }
    }

    private func reportAway(_ event: StaticString, _ consequence: String) {
        log(.error, event, ["message": "the home database cannot be reached: \(consequence)"])
    }

    /// Takes over from now on what is changed at other servers.
    func start(_ keeper: RulesKeeper?, _ revocations: RevocationKeeper?) throws {
        try thread.start(name: "security", everyMilliseconds: Self.intervalMilliseconds) { [log] pause in
            var rulesTaken = Taking("rules_taken", failed: "rules_not_taken", log)
            var usersTaken = Taking("revocations_taken", failed: "revocations_not_taken", log)
            while pause() {
                rulesTaken.attempt { () throws(RequestError) in
                    try keeper?.takeShared().map { ("number", String($0)) }
                }
                usersTaken.attempt { () throws(RequestError) in
                    guard let count = try revocations?.takeShared(), count > 0 else { return nil }
                    return ("users", String(count))
                }
            }
        }
    }

    /// Ends the thread.
    func stop() { thread.stop() }
}

/// Takes something over again and again. A failure that lasts is logged once.
private struct Taking {
    private let taken: StaticString
    private let failed: StaticString
    private let log: Log
    private var lastFailure = ""

    init(_ taken: StaticString, failed: StaticString, _ log: Log) {
        self.taken = taken
        self.failed = failed
        self.log = log
    }

    /// - Parameter take: returns what to log about what was taken; nil if there was nothing.
    mutating func attempt(_ take: () throws(RequestError) -> (String, String)?) {
        do throws(RequestError) {
            if let pair = try take() { log.write(.info, taken, [pair]) }
            lastFailure = ""
        } catch {
            if error.message != lastFailure { log(.warning, failed, ["message": error.message]) }
            lastFailure = error.message
        }
    }
}
