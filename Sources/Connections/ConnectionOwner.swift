package import EventLoops

/// What holds the connections of one loop of a server, as they use it. Used on the loop's thread.
package protocol ConnectionOwner: AnyObject {
    var statistics: ServerStatistics { get set }

    /// Counts bytes of incomplete messages, or discounts them; returns the sum over all connections of the server.
    func countAssembled(_ bytes: Int) -> Int
    /// Counts bytes of replies that streams keep back, or discounts them; returns the sum over all connections.
    func countKeptBack(_ bytes: Int) -> Int
    /// The connection is over; comes once.
    func connectionEnded(_ connection: some CallConnection, _ reason: CloseReason)
}

/// Counters of a server, for metrics. Sums over its loops.
package struct ServerStatistics: Sendable, Equatable {
    package var connectionsOpened: UInt64 = 0
    package var connectionsOpen: UInt64 = 0
    /// Of those open, by protocol; of the rest it is not known yet.
    package var hearthConnectionsOpen: UInt64 = 0
    package var http1ConnectionsOpen: UInt64 = 0
    package var http2ConnectionsOpen: UInt64 = 0
    package var callsOpen: UInt64 = 0
    package var connectionsRefused: UInt64 = 0
    /// Of the connections that were refused, those beyond the limit of their network.
    package var networkConnectionsRefused: UInt64 = 0
    package var calls: UInt64 = 0
    package var deadlinesExceeded: UInt64 = 0
    package var repliesStalled: UInt64 = 0
    package var protocolErrors: UInt64 = 0
    package var bytesReceived: UInt64 = 0
    package var bytesSent: UInt64 = 0
    /// Nanoseconds of the longest iteration of the last one to two minutes, by the name of the loop.
    package var longestIterations: [String: UInt64] = [:]

    package init() {}

    package mutating func add(_ other: ServerStatistics) {
        connectionsOpened &+= other.connectionsOpened
        connectionsOpen &+= other.connectionsOpen
        hearthConnectionsOpen &+= other.hearthConnectionsOpen
        http1ConnectionsOpen &+= other.http1ConnectionsOpen
        http2ConnectionsOpen &+= other.http2ConnectionsOpen
        callsOpen &+= other.callsOpen
        connectionsRefused &+= other.connectionsRefused
        networkConnectionsRefused &+= other.networkConnectionsRefused
        calls &+= other.calls
        deadlinesExceeded &+= other.deadlinesExceeded
        repliesStalled &+= other.repliesStalled
        protocolErrors &+= other.protocolErrors
        bytesReceived &+= other.bytesReceived
        bytesSent &+= other.bytesSent
        longestIterations.merge(other.longestIterations, uniquingKeysWith: max)
    }
}
