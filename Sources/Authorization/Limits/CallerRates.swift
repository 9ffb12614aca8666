/// How much a caller may ask for; 0 sets no limit. A network is an IPv4 address or an IPv6 /64.
package struct CallerRates: Equatable, Sendable {
    /// Requests of one network in a second in the long run, and twice as many at once. Those of principals do not
    /// count.
    package var networkRequests = 0
    /// The same for one user.
    package var userRequests = 0
    /// UNAUTHENTICATED answers to one network in a minute.
    package var networkRefusals = 0

    package init(networkRequests: Int = 0, userRequests: Int = 0, networkRefusals: Int = 0) {
        self.networkRequests = networkRequests
        self.userRequests = userRequests
        self.networkRefusals = networkRefusals
    }

    /// What a closed server begins with: many times what the users of one office need.
    package static let closed = CallerRates(networkRequests: 2_000, userRequests: 1_000, networkRefusals: 600)
}
