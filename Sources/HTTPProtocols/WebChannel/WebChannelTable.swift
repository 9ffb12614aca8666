package import Basics
import Calls
internal import Synchronization

/// The WebChannel sessions of a server, found by their identifiers. Thread-safe.
///
/// An identifier is 128 random bits: who knows it can use the session.
package final class WebChannelTable: Sendable {
    package let limits: WebChannelLimits
    private let sessions = Mutex<[String: WebChannelConnection]>([:])
    private let heldBytes = Atomic<Int>(0)
    private let networks: NetworkCounts
    let browsers = WebChannelBrowsers()

    package init(limits: WebChannelLimits = WebChannelLimits()) {
        self.limits = limits
        networks = NetworkCounts(max: limits.networkSessionsMax)
    }

    /// Open sessions.
    package var count: Int { sessions.withLock { $0.count } }

    /// Sessions that were refused because their network had too many.
    package var refusedCount: UInt64 { networks.refusedCount }

    /// Bytes that all sessions hold.
    package var heldBytesTotal: Int { heldBytes.load(ordering: .relaxed) }

    /// The session with this identifier; nil if there is none or it has ended.
    package func session(_ identifier: String) -> WebChannelConnection? { sessions.withLock { $0[identifier] } }

    /// Opens a session, whose home is the loop of `exchange`. On that loop's thread.
    ///
    /// - Parameters:
    ///   - rpc: the procedure that the session is a call of.
    /// - Throws: RESOURCE_EXHAUSTED if there are too many sessions, or too many of the network.
    package func open(
        _ rpc: RPC, _ service: any WebChannelService, for exchange: HTTPExchange, _ origin: WebChannelOrigin
    ) throws(RequestError) -> WebChannelConnection {
        guard networks.enter(origin.network) else {
            throw RequestError(
                .resourceExhausted, "Your address has its limit of \(limits.networkSessionsMax) sessions.")
        }
        let identifier = (0..<2).map { _ in Hexadecimal.text(UInt64.random(in: .min ... .max)) }.joined()
        let made = WebChannelConnection(
            identifier, rpc, service, in: self, loop: exchange.loop, peerAddress: exchange.peerAddress, origin)
        let isOpen = sessions.withLock { sessions in
            guard sessions.count < limits.sessionsMax else { return false }
            sessions[identifier] = made
            return true
        }
        guard isOpen else {
            networks.leave(origin.network)
            throw RequestError(.resourceExhausted, "The server has its limit of \(limits.sessionsMax) sessions.")
        }
        made.start()
        return made
    }

    /// The session has ended.
    func remove(_ session: WebChannelConnection) {
        if sessions.withLock({ $0.removeValue(forKey: session.identifier) }) != nil {
            networks.leave(session.origin.network)
        }
    }

    /// Counts bytes that sessions hold.
    ///
    /// - Parameter change: negative when they hold less.
    /// - Returns: whether all sessions together are within the limit.
    func count(_ change: Int) -> Bool {
        heldBytes.wrappingAdd(change, ordering: .relaxed).newValue <= limits.bytesTotalMax
    }
}
