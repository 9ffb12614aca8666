// Security of `hearth serve`: the flags, the files that they name, and what is made of them.

import Authorization
import FileSystem
import FirestoreService
import Identity
import KeyFetching
import SecurityRules
import Synchronization

/// Who may do what on a server: the mode, the rules, and what credentials are checked against. Thread-safe.
///
/// An open server has all of it too: it trusts everyone, so its authenticator takes every caller for an admin.
final class ServeSecurity: Sendable {
    static let rules = Flag<String>(
        "rules", "FILE", required: false,
        help: """
            The security rules of all databases, as Firebase's firestore.rules has them, instead of those that hearth \
            rules apply keeps in the data directory.
            """)
    static let principals = Flag<String>(
        "principals", "FILE", required: false,
        help: "Servers that may call, with their roles and credentials. hearth token makes the file.")
    static let insecure = Flag(
        switch: "insecure", help: "Everyone who reaches the port may do everything, whatever other flags are given.")
    static let emulator = Flag(
        switch: "emulator",
        help: """
            The emulator's mode, on a loopback address alone: the rules decide, a bearer token "owner" may do \
            everything, and unsigned tokens are users.
            """)

    static let flags: [any FlagDeclaration] =
        [rules] + IssuerSettings.flags + [principals, insecure, emulator, ConfigurationCheck.flag]

    /// What a reload replaces.
    private struct Contents {
        var authenticator: Authenticator
        var ruleset: Ruleset?
        /// Why the revocations could not be read the last time.
        var revocationFailure: String?
    }

    let mode: SecurityMode
    /// The issuers that the flags describe.
    let issuers: [IssuerSettings]
    /// Whether ``reload()`` has anything to read.
    let readsFiles: Bool
    private let files: SecurityFiles
    /// The rules of the data directory that were read; nil if there are none, or with `--rules`.
    private let kept: RulesInForce?
    private let keys: IssuerKeys
    private let users: TokenVerifier
    /// The users whose tokens are refused.
    let revocations: Revocations
    private let accessTokens: AccessTokens
    private let contents: Mutex<Contents>
    private let log: Log

    /// Reads the files that a command line names.
    ///
    /// - Parameters:
    ///   - host: the address that is listened on.
    ///   - dataDirectory: where revocations and the secret of access tokens are kept; nil reads and writes neither, for
    ///     a check of the configuration.
    ///   - history: the rules of the data directory, which are only read.
    ///   - spareSpace: for revocations on a full disk.
    /// - Throws: `CommandFailure` if other machines would reach an open server, if a file cannot be read or used, or if
    ///   flags are missing or contradict each other.
    static func make(
        _ arguments: ParsedArguments, host: String, hasCertificate: Bool, hasAllowedHosts: Bool,
        dataDirectory: String?, history: RulesHistory? = nil, spareSpace: SpareSpace = SpareSpace(), log: Log
    ) throws(CommandFailure) -> ServeSecurity {
        let kept = arguments.has(rules) ? nil : try history.flatMap(RulesInForce.newest)
        var settings = SecuritySettings()
        settings.isLoopback = ServeSettings.isLoopback(host)
        settings.hasRules = arguments.has(rules) || kept != nil
        settings.hasTokens = IssuerSettings.flags.contains { arguments.has($0) }
        settings.hasPrincipals = arguments.has(principals)
        settings.hasCertificate = hasCertificate
        settings.hasAllowedHosts = hasAllowedHosts
        settings.isInsecure = arguments[insecure]
        settings.isEmulator = arguments[emulator]
        let mode: SecurityMode
        do throws(SettingsFault) {
            mode = try SecurityMode.of(settings)
        } catch {
            throw CommandFailure("\(error)")
        }
        return try ServeSecurity(arguments, mode, dataDirectory, spareSpace, kept, log)
    }

    /// Whether a command line names another way to be known, or permitted, than a client certificate.
    static func identifies(_ arguments: ParsedArguments) -> Bool {
        arguments.has(rules) || arguments.has(principals) || arguments.has(IssuerSettings.issuer)
    }

    private init(
        _ arguments: ParsedArguments, _ mode: SecurityMode, _ dataDirectory: String?, _ spareSpace: SpareSpace,
        _ kept: RulesInForce?, _ log: Log
    ) throws(CommandFailure) {
        self.mode = mode
        self.kept = kept
        self.log = log
        files = SecurityFiles(rules: arguments.value(of: Self.rules), principals: arguments.value(of: Self.principals))
        issuers = try IssuerSettings.all(arguments)
        keys = try IssuerKeys(issuers, authorities: arguments.value(of: IssuerSettings.keyAuthorities), log)
        users = TokenVerifier(keys.issuers)
        readsFiles = files.rules != nil || files.principals != nil || !issuers.isEmpty
        // What others have to have right comes first: a start that is refused makes no file.
        let (ruleset, principals) = (try files.ruleset() ?? kept?.ruleset, try files.registry())
        let directory = dataDirectory.map { IdentityDirectory(dataDirectory: $0) }
        (revocations, accessTokens) = try Self.kept(
            directory, spareSpace, hasPrincipals: files.principals != nil)
        contents = Mutex(
            Contents(
                authenticator: Authenticator(
                    mode: mode, users: users, principals: principals, revocations: revocations,
                    accessTokens: accessTokens),
                ruleset: ruleset))
    }

    /// - Parameters:
    ///   - directory: where revocations and the secret of access tokens are kept; nil keeps them as long as the
    ///     process.
    ///   - spareSpace: for revocations on a full disk.
    ///   - hasPrincipals: whether there are principals, who alone get access tokens.
    private static func kept(
        _ directory: IdentityDirectory?, _ spareSpace: SpareSpace, hasPrincipals: Bool
    ) throws(CommandFailure) -> (Revocations, AccessTokens) {
        do throws(PrincipalFault) {
            let secret = hasPrincipals ? directory : nil
            return (
                try directory?.revocations(spareSpace: spareSpace) ?? Revocations(),
                try secret?.accessTokens() ?? AccessTokens()
            )
        } catch {
            throw CommandFailure("\(error)")
        }
    }

    /// What credentials are checked against now.
    var authenticator: Authenticator { contents.withLock { $0.authenticator } }

    /// The rules of `--rules`, or those that the data directory had at the start, with their text; nil without either.
    var ruleset: Ruleset? { contents.withLock { $0.ruleset } }

    /// The file of these rules.
    var rulesFile: String? { files.rules ?? kept?.file }

    /// What the rules and principals are read from, and how many keys each issuer has.
    var summary: [String] {
        var lines: [String] = []
        if let file = rulesFile, let ruleset {
            lines.append("rules: \(file), \(ruleset.statements.count) allow statements")
        }
        if let file = files.principals { lines.append("principals: \(file)") }
        return lines + keys.summary
    }

    /// Reads the files again. If one of them cannot be used, nothing changes. Keys of URLs stay.
    func reload() throws(CommandFailure) {
        let (ruleset, principals) = (try files.ruleset() ?? kept?.ruleset, try files.registry())
        let keySets = try keys.read()
        do throws(PrincipalFault) {
            try revocations.refresh()
        } catch {
            throw CommandFailure("\(error)")
        }
        keys.replace(keySets)
        let authenticator = Authenticator(
            mode: mode, users: users, principals: principals, revocations: revocations, accessTokens: accessTokens)
        contents.withLock { ($0.authenticator, $0.ruleset) = (authenticator, ruleset) }
    }

    /// The access control of the server.
    func makeAuthorization(rates: CallerRates = CallerRates()) -> Authorization {
        Authorization(Authorization.State(authenticator: authenticator, ruleset: ruleset), rates: rates, log: log)
    }

    /// Changes the rules of the data directory for the server with this access control.
    ///
    /// - Parameter shared: what the servers of a cluster have in common.
    /// - Returns: also the number of the rules in force; nil for none.
    func makeRulesKeeper(
        _ history: RulesHistory, _ authorization: Authorization, shared: (any SharedRules)?
    ) -> (keeper: RulesKeeper, number: Int?) {
        (RulesKeeper(history, authorization: authorization, file: files.rules, shared: shared), kept?.number)
    }

    /// Reads the files again and gives what they hold to the server's access control. Rules of the data directory stay
    /// as they were applied last.
    func reload(_ authorization: Authorization) throws(CommandFailure) {
        try reload()
        if files.rules == nil {
            authorization.replace(authenticator)
        } else {
            authorization.replace(authenticator, ruleset)
        }
    }

    /// Fetches keys that have expired, and reads revocations that another process has added. To be called once a
    /// second; does not wait for the network.
    func tick() {
        keys.tick()
        var failure: String?
        do throws(PrincipalFault) {
            try revocations.refresh()
        } catch {
            failure = "\(error)"
        }
        let isNew = contents.withLock { contents in
            defer { contents.revocationFailure = failure }
            return contents.revocationFailure != failure
        }
        if isNew, let failure { log(.error, "revocations_failed", ["message": failure]) }
    }
}

/// The paths of rules and principals.
private struct SecurityFiles: Sendable {
    let rules: String?
    let principals: String?

    func ruleset() throws(CommandFailure) -> Ruleset? {
        guard let rules else { return nil }
        return try RulesFile.ruleset(rules)
    }

    func registry() throws(CommandFailure) -> Principals {
        do throws(PrincipalFault) {
            guard let principals else { return try Principals() }
            return try Principals(try PrincipalFile.read(principals))
        } catch {
            throw CommandFailure("\(error)")
        }
    }
}
