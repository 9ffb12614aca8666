import Authorization
import Identity
import Server

/// How much one caller may use: the flags, and the defaults of a closed server. An open or insecure server, and one in
/// the emulator's mode, has the limits that flags give alone.
enum CallerFlags {
    private static let range = 0...100_000_000

    private static let connections = flag(
        "max-address-connections",
        """
        Open connections of one address (IPv4, or an IPv6 /64). A further one is refused. Addresses of private \
        networks and of trusted proxies are not counted. 0 sets no limit; a closed server has 1000.
        """)
    private static let sessions = flag(
        "max-address-web-sessions",
        "WebChannel sessions of one address. A further one gets RESOURCE_EXHAUSTED. A closed server has 1000.")
    private static let requests = flag(
        "address-requests",
        """
        Requests of one address in a second, and twice as many at once; those of principals do not count. More get \
        RESOURCE_EXHAUSTED. A closed server has 2000.
        """)
    private static let userRequests = flag(
        "user-requests", "The same for one user, from all addresses. A closed server has 1000.")
    private static let refusals = flag(
        "address-refusals",
        """
        UNAUTHENTICATED answers to one address in a minute. Then it gets RESOURCE_EXHAUSTED; if it does not wait, its \
        connections are closed. A closed server has 600.
        """)

    private static let commits = flag(
        "address-commits",
        """
        Commits of one address in a second, and twice as many at once. More get RESOURCE_EXHAUSTED. A closed server \
        has 1000.
        """)
    private static let userCommits = flag(
        "user-commits", "The same for one user, from all addresses. A closed server has 500.")
    private static let ruleWork = flag(
        "address-rule-work",
        """
        Work of security rules for one address in a second: expressions that are evaluated, and KiB that they read or \
        build. Calls after more get RESOURCE_EXHAUSTED. A closed server has 2000000.
        """)
    private static let userRuleWork = flag(
        "user-rule-work", "The same for one user, from all addresses. A closed server has 1000000.")
    private static let listeners = flag(
        "address-listeners",
        """
        Targets that one address listens to. A further one is removed with RESOURCE_EXHAUSTED. A closed server has \
        100000.
        """)
    private static let userListeners = flag(
        "user-listeners", "The same for one user, from all addresses. A closed server has 10000.")

    static let flags: [any FlagDeclaration] = [
        connections, sessions, requests, userRequests, refusals, commits, userCommits, ruleWork, userRuleWork,
        listeners, userListeners,
    ]

    private static let defaultConnections = 1_000
    private static let defaultSessions = 1_000

    private static func flag(_ name: String, _ help: String) -> Flag<Int> {
        Flag(name, "N", in: range, help: help)
    }

    /// The limits of calls and listeners.
    static func rates(_ arguments: ParsedArguments, _ mode: SecurityMode) -> CallerRates {
        var rates = mode == .closed ? CallerRates.closed : CallerRates()
        let fields: [(Flag<Int>, WritableKeyPath<CallerRates, Int>)] = [
            (requests, \.networkRequests), (userRequests, \.userRequests), (refusals, \.networkRefusals),
            (commits, \.networkCommits), (userCommits, \.userCommits), (ruleWork, \.networkRuleWork),
            (userRuleWork, \.userRuleWork), (listeners, \.networkListeners), (userListeners, \.userListeners),
        ]
        for (flag, field) in fields { if let value = arguments.value(of: flag) { rates[keyPath: field] = value } }
        return rates
    }

    /// The limits in force, for an operator.
    static func summary(_ arguments: ParsedArguments, _ mode: SecurityMode) -> String {
        let rates = rates(arguments, mode)
        var configuration = ServeSettings.defaults
        set(&configuration, arguments, mode)
        let limits = [
            (configuration.transport.networkConnectionsMax, "connections of an address"),
            (configuration.webChannel.networkSessionsMax, "WebChannel sessions of an address"),
            (rates.networkRequests, "requests a second of an address"),
            (rates.userRequests, "requests a second of a user"),
            (rates.networkRefusals, "refusals a minute of an address"),
            (rates.networkCommits, "commits a second of an address"),
            (rates.userCommits, "commits a second of a user"),
            (rates.networkRuleWork, "units of work of rules a second for an address"),
            (rates.userRuleWork, "units of work of rules a second for a user"),
            (rates.networkListeners, "listeners of an address"),
            (rates.userListeners, "listeners of a user"),
        ]
        let texts = limits.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return "limits: \(texts.isEmpty ? "none" : texts.joined(separator: ", "))"
    }

    /// Sets the limits of connections and sessions.
    static func set(
        _ configuration: inout DatabaseServerConfiguration, _ arguments: ParsedArguments, _ mode: SecurityMode
    ) {
        let isClosed = mode == .closed
        configuration.transport.networkConnectionsMax =
            arguments.value(of: connections) ?? (isClosed ? defaultConnections : 0)
        configuration.webChannel.networkSessionsMax = arguments.value(of: sessions) ?? (isClosed ? defaultSessions : 0)
    }
}
