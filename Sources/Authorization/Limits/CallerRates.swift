/// How much a caller may ask for; 0 sets no limit. A network is an IPv4 address or an IPv6 /64. What principals do does
/// not count. Of what is limited by the second, a caller may use twice as much at once.
package struct CallerRates: Equatable, Sendable {
    /// Requests of one network in a second.
    package var networkRequests = 0
    /// The same for one user.
    package var userRequests = 0
    /// UNAUTHENTICATED answers to one network in a minute.
    package var networkRefusals = 0
    /// Commits of one network in a second.
    package var networkCommits = 0
    /// The same for one user.
    package var userCommits = 0
    /// Work of security rules for one network in a second: expressions that are evaluated, and KiB that they read or
    /// build.
    package var networkRuleWork = 0
    /// The same for one user.
    package var userRuleWork = 0
    /// Targets of one network that are listened to.
    package var networkListeners = 0
    /// The same for one user.
    package var userListeners = 0

    package init(networkRequests: Int = 0, userRequests: Int = 0, networkRefusals: Int = 0) {
        self.networkRequests = networkRequests
        self.userRequests = userRequests
        self.networkRefusals = networkRefusals
    }

    /// What a closed server begins with: many times what the users of one office need.
    package static let closed = {
        var rates = CallerRates(networkRequests: 2_000, userRequests: 1_000, networkRefusals: 600)
        rates.networkCommits = 1_000
        rates.userCommits = 500
        rates.networkRuleWork = 2_000_000
        rates.userRuleWork = 1_000_000
        rates.networkListeners = 100_000
        rates.userListeners = 10_000
        return rates
    }()

    /// Whether anything but refusals is limited for networks, and for users.
    var limitsNetworks: Bool { networkRequests | networkCommits | networkRuleWork | networkListeners > 0 }
    var limitsUsers: Bool { userRequests | userCommits | userRuleWork | userListeners > 0 }
}
