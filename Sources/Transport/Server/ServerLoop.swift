// The part of a server that lives on one loop: its connections, its handler, its counters.

import CUV
import DocumentModel
import Synchronization

/// Counters of a server, for metrics. Sums over its loops.
package struct ServerStatistics: Sendable, Equatable {
    package var connectionsOpened: UInt64 = 0
    package var connectionsOpen: UInt64 = 0
    /// Of those open, by what they speak; the rest have not said yet.
    package var hearthConnectionsOpen: UInt64 = 0
    package var http1ConnectionsOpen: UInt64 = 0
    package var http2ConnectionsOpen: UInt64 = 0
    package var callsOpen: UInt64 = 0
    package var connectionsRefused: UInt64 = 0
    package var calls: UInt64 = 0
    package var deadlinesExceeded: UInt64 = 0
    package var repliesStalled: UInt64 = 0
    package var protocolErrors: UInt64 = 0
    package var bytesReceived: UInt64 = 0
    package var bytesSent: UInt64 = 0

    package init() {}

    mutating func add(_ other: ServerStatistics) {
        connectionsOpened &+= other.connectionsOpened
        connectionsOpen &+= other.connectionsOpen
        hearthConnectionsOpen &+= other.hearthConnectionsOpen
        http1ConnectionsOpen &+= other.http1ConnectionsOpen
        http2ConnectionsOpen &+= other.http2ConnectionsOpen
        callsOpen &+= other.callsOpen
        connectionsRefused &+= other.connectionsRefused
        calls &+= other.calls
        deadlinesExceeded &+= other.deadlinesExceeded
        repliesStalled &+= other.repliesStalled
        protocolErrors &+= other.protocolErrors
        bytesReceived &+= other.bytesReceived
        bytesSent &+= other.bytesSent
    }
}

/// Confined to its loop's thread, but for what `shared` holds.
final class ServerLoop: @unchecked Sendable {
    // Sendable: references are passed between threads, state is touched on the loop's thread only.

    let loop: EventLoop
    let configuration: ServerConfiguration
    /// What clients get after the time of grace to take the last statuses.
    private static let lastWordsMilliseconds: UInt64 = 2_000

    let shared: ServerShared
    private let handler: any ServiceHandler
    private let http: (any HTTPHandler)?
    /// For the headers of HTTP replies.
    var date = HTTPDate()
    private var connections: [ObjectIdentifier: CallConnection] = [:]
    private var opening: [ObjectIdentifier: OpeningConnection] = [:]
    private var listener: Listener?
    private var isDraining = false
    private var onEmpty: (() -> Void)?
    /// Counted here, of connections that are open only what `snapshot` adds.
    var statistics = ServerStatistics()

    init(
        loop: EventLoop, configuration: ServerConfiguration, shared: ServerShared, handler: any ServiceHandler,
        http: (any HTTPHandler)?
    ) {
        self.loop = loop
        self.configuration = configuration
        self.shared = shared
        self.handler = handler
        self.http = http
    }

    /// Begins to accept connections from a socket that is bound and listens already.
    func listen(on descriptor: Int32, accepted: @escaping (Int32) -> Void) {
        guard !isDraining else { return closeDescriptor(descriptor) }
        loop.beforeEachWait { [handler] in handler.loopWillWait() }
        listener = Listener(loop: loop, descriptor: descriptor, accepted: accepted) { [configuration] text in
            configuration.onEvent(.acceptFailed(text))
        }
    }

    /// Takes over a new connection.
    func adopt(_ descriptor: Int32) {
        guard !isDraining else { return closeDescriptor(descriptor) }
        let isWithinLimit = shared.openConnection(max: configuration.connectionsMax)
        guard isWithinLimit || shared.openRefusal(max: configuration.refusalsMax) else {
            statistics.connectionsRefused &+= 1
            configuration.onEvent(.connectionRefused(peer: "unknown"))
            return closeDescriptor(descriptor)
        }
        guard let channel = Channel(adopting: descriptor, loop: loop, limits: configuration.channel) else {
            return isWithinLimit ? shared.closeConnection() : shared.closeRefusal()
        }
        isWithinLimit ? open(channel) : refuse(channel)
    }

    private func open(_ channel: Channel) {
        let peer = channel.peerAddress
        statistics.connectionsOpened &+= 1
        configuration.onEvent(.connectionOpened(peer: peer))
        let driver = OpeningConnection(channel: channel, server: self, peerAddress: peer)
        opening[ObjectIdentifier(driver)] = driver
        channel.driver = driver
        channel.startReading()
    }

    private func refuse(_ channel: Channel) {
        statistics.connectionsRefused &+= 1
        configuration.onEvent(.connectionRefused(peer: channel.peerAddress))
        channel.driver = RefusedConnection(channel: channel, configuration: configuration, shared: shared)
        channel.startReading()
    }

    /// Puts the driver of a protocol in the place of the one that waited for the first bytes; false when it is not spoken here.
    func speak(
        _ tongue: Tongue, on channel: Channel, peerAddress: String, openedAt: UInt64, insteadOf driver: OpeningConnection
    ) -> Bool {
        let connection: CallConnection
        switch (tongue, http) {
        case (.hearth, _):
            connection = ServerConnection(
                channel: channel, handler: handler, server: self, peerAddress: peerAddress, openedAt: openedAt)
        case (.http2, _):
            connection = HTTP2Connection(
                channel: channel, handler: handler, http: http, server: self, peerAddress: peerAddress, openedAt: openedAt)
        case (.http1, let http?):
            connection = HTTP1Connection(
                channel: channel, handler: handler, http: http, server: self, peerAddress: peerAddress, openedAt: openedAt)
        case (.http1, nil), (.unknown, _): return false
        }
        opening[ObjectIdentifier(driver)] = nil
        connections[ObjectIdentifier(connection)] = connection
        channel.driver = connection
        return true
    }

    func connectionEnded(_ connection: CallConnection, _ reason: CloseReason) {
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        statistics.calls &+= connection.callsBegun
        ended(connection.channel, connection.peerAddress, reason)
    }

    func openingEnded(_ driver: OpeningConnection, peerAddress: String, _ reason: CloseReason) {
        guard opening.removeValue(forKey: ObjectIdentifier(driver)) != nil else { return }
        ended(driver.channel, peerAddress, reason)
    }

    private func ended(_ channel: Channel, _ peerAddress: String, _ reason: CloseReason) {
        statistics.bytesReceived &+= channel.bytesReceived
        statistics.bytesSent &+= channel.bytesSent
        shared.closeConnection()
        configuration.onEvent(.connectionClosed(peer: peerAddress, reason))
        tellIfEmpty()
    }

    /// The counters now, open connections included.
    func snapshot() -> ServerStatistics {
        var all = statistics
        all.connectionsOpen = UInt64(connections.count + opening.count)
        for connection in connections.values {
            all.calls &+= connection.callsBegun
            all.callsOpen &+= UInt64(connection.openCalls)
            switch connection {
            case is HTTP1Connection: all.http1ConnectionsOpen &+= 1
            case is HTTP2Connection: all.http2ConnectionsOpen &+= 1
            default: all.hearthConnectionsOpen &+= 1
            }
        }
        for channel in connections.values.map(\.channel) + opening.values.map(\.channel) {
            all.bytesReceived &+= channel.bytesReceived
            all.bytesSent &+= channel.bytesSent
        }
        return all
    }

    // MARK: The end

    /// Accepts nothing more, lets the open calls finish for `graceMilliseconds`, and says when no connection is left.
    func drain(graceMilliseconds: UInt64, _ done: @escaping () -> Void) {
        isDraining = true
        onEmpty = done
        listener?.close()
        listener = nil
        for driver in opening.values { driver.end() }
        for connection in connections.values { connection.drain() }
        loop.schedule(afterMilliseconds: graceMilliseconds) { [weak self] in self?.abandon() }
        tellIfEmpty()
    }

    /// Ends what is left after the time of grace, and cuts connections whose clients do not even read that.
    private func abandon() {
        for connection in connections.values { connection.abandon() }
        loop.schedule(afterMilliseconds: Self.lastWordsMilliseconds) { [weak self] in
            guard let self else { return }
            for connection in connections.values { connection.channel.close(.stopped) }
        }
    }

    private func tellIfEmpty() {
        guard isDraining, connections.isEmpty, opening.isEmpty, let done = onEmpty else { return }
        onEmpty = nil
        done()
    }
}

/// What the loops of a server share.
final class ServerShared: Sendable {
    private let open = Atomic<Int>(0)
    private let refused = Atomic<Int>(0)
    private let assembling = Atomic<Int>(0)

    /// Counts bytes of incomplete messages, or discounts them; returns the sum over all connections.
    func countAssembled(_ bytes: Int) -> Int { assembling.wrappingAdd(bytes, ordering: .relaxed).newValue }

    /// Counts a new connection, if there may be one more.
    func openConnection(max: Int) -> Bool { Self.count(open, max) }
    func closeConnection() { open.wrappingSubtract(1, ordering: .relaxed) }

    /// Counts a connection that is to be refused in its own protocol, if there may be one more.
    func openRefusal(max: Int) -> Bool { Self.count(refused, max) }
    func closeRefusal() { refused.wrappingSubtract(1, ordering: .relaxed) }

    private static func count(_ counter: borrowing Atomic<Int>, _ max: Int) -> Bool {
        if counter.wrappingAdd(1, ordering: .relaxed).newValue <= max { return true }
        counter.wrappingSubtract(1, ordering: .relaxed)
        return false
    }
}
