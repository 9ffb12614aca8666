// `hearth serve --check-config`: what an operator reads before a port is opened.

import Authorization
import FirestoreService
import Identity
import PostgreSQLLog
import SecurityRules
import Server

/// Prints the effective settings of `hearth serve` and who may do what.
enum ConfigurationCheck {
    static let flag = Flag(
        switch: "check-config",
        help: """
            Prints the effective settings and who may do what, and ends. Reads the rules in the data directory, and \
            does not open it.
            """)

    /// - Throws: what a start with the same flags and files would.
    static func print(
        _ arguments: ParsedArguments, _ configuration: DatabaseServerConfiguration, tls: ServeTLS?
    ) throws {
        let security = try ServeSecurity.make(
            arguments, host: configuration.transport.host, hasCertificate: tls != nil,
            hasAllowedHosts: ServeSettings.namesHosts(arguments), dataDirectory: nil,
            history: RulesHistory(dataDirectory: configuration.store.directory), log: configuration.log)
        let callers = security.mode.summary(
            isLoopback: ServeSettings.isLoopback(configuration.transport.host), hasRules: security.ruleset != nil)
        var lines = ["security: \(security.mode.rawValue)"] + callers.map { "  \($0)" } + [""]
        lines += security.summary + security.issuers.map(describe)
        lines.append("tls: \(tls.map { "certificate until \($0.expires)" } ?? "off")")
        lines.append(CallerFlags.summary(arguments, security.mode))
        if let socket = configuration.unixSocket {
            lines.append("socket: \(socket.path), in plain text, for callers that its permissions let connect")
        }
        if let address = arguments.value(of: ServeSettings.metricsAddress) {
            lines.append("metrics: \(address.flagText), in plain text, for everyone who reaches that address")
        }
        if let ruleset = security.ruleset { lines += warnings(ruleset, file: security.rulesFile) }
        lines += [tls?.accessWarning, AccessWarning.ofData(in: configuration.store.directory)].compactMap { $0?.line }
        for line in lines + ["", "settings:"] + settings(arguments) { try StandardOutput.print(line) }
    }

    private static func describe(_ issuer: IssuerSettings) -> String {
        let projects = issuer.projects.joined(separator: ", ")
        let audiences = issuer.audiences.joined(separator: ", ")
        return "issuer: \(issuer.name), audience \(audiences), projects \(projects), user in \(issuer.userClaim)"
    }

    private static func warnings(_ ruleset: Ruleset, file: String?) -> [String] {
        ruleset.warnings.map { $0.rendered(in: ruleset.source, file: file ?? "") }
    }

    /// Every flag that has a value, a line for each value.
    private static func settings(_ arguments: ParsedArguments) -> [String] {
        ServeSettings.groups.flatMap(\.flags).flatMap { flag in
            arguments.texts(of: flag).map { text in
                "  --\(flag.name) \(flag.name == ServeSettings.cluster.name ? maskedAddress(text) : masked(text))"
            }
        }
    }

    /// The address of a database, unless it has a password, or cannot be read.
    private static func maskedAddress(_ text: String) -> String {
        let isOpen =
            PostgreSQLConnection.libraryProblem == nil && PostgreSQLConnection.problem(ofOpenAddress: text) == nil
        return isOpen ? text : "… (an address with a password, which is not shown)"
    }

    /// The text without the query of a URL in it, which may have a secret. Other secrets are in files alone.
    private static func masked(_ text: String) -> String {
        guard text.contains("://"), let query = text.firstIndex(of: "?") else { return text }
        return "\(text[..<query])?…"
    }
}
