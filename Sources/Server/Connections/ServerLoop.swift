// The part of a server that lives on one loop: its connections, its handler, its counters.

import Calls
import Connections
import EventLoops
import HTTPProtocols
import NativeProtocol
import Synchronization

/// Confined to its loop's thread, except what `shared` holds.
final class ServerLoop: ConnectionOwner, @unchecked Sendable {
    // Sendable: references are passed between threads, state is touched on the loop's thread only.

    let loop: EventLoop
    let configuration: ServerConfiguration
    /// What clients get after the time of grace to take the last statuses.
    private static let finalStatusMilliseconds: UInt64 = 2_000

    let shared: ServerShared
    private let services: LoopServices
    private let rpcs: RPCTable
    /// For the headers of HTTP replies.
    private let date = HTTPDate()
    private var connections: [ObjectIdentifier: any CallConnection] = [:]
    private var opening: [ObjectIdentifier: OpeningConnection] = [:]
    private var listener: Listener?
    /// The Unix sockets.
    private var local: [(listener: Listener, file: LocalSocketFile)] = []
    private var isDraining = false
    private var onEmpty: (() -> Void)?
    /// Counted here, of connections that are open only what `snapshot` adds.
    var statistics = ServerStatistics()

    init(
        loop: EventLoop, configuration: ServerConfiguration, rpcs: RPCTable, shared: ServerShared,
        services: LoopServices
    ) {
        self.loop = loop
        self.configuration = configuration
        self.rpcs = rpcs
        self.shared = shared
        self.services = services
    }

    /// Begins to accept connections from a socket that is bound and listens already.
    func listen(on descriptor: Int32, accepted: @escaping (Int32) -> Void) {
        guard !isDraining else { return closeDescriptor(descriptor) }
        loop.beforeEachWait { [services] in services.calls.loopWillWait() }
        listener = Listener(loop: loop, descriptor: descriptor, accepted: accepted) { [configuration] text in
            configuration.onEvent(.acceptFailed(text))
        }
    }

    /// Begins to accept connections from a Unix socket that listens already.
    func listen(atSocket file: LocalSocketFile, on descriptor: Int32, accepted: @escaping (Int32) -> Void) {
        guard !isDraining else {
            file.remove()
            return closeDescriptor(descriptor)
        }
        let listener = Listener(loop: loop, descriptor: descriptor, accepted: accepted) { [configuration] text in
            configuration.onEvent(.acceptFailed(text))
        }
        if let listener { local.append((listener, file)) }
    }

    /// Takes over a new connection.
    ///
    /// - Parameter rpcs: the procedures that its calls may name; nil for those of the port.
    func adopt(_ descriptor: Int32, _ socket: SocketKind = .tcp, _ rpcs: RPCTable? = nil) {
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
        guard isWithinLimit else { return refuse(channel, .tooMany(configuration.connectionsMax)) }
        if !shared.networks.enter(network(ofPeer: channel.peerAddress, nil)) { return refuseNetwork(channel) }
        open(channel, socket, rpcs ?? self.rpcs)
    }

    /// The network that a connection counts for; nil if it counts for none.
    ///
    /// - Parameter header: what a trusted proxy has sent. The client that it names counts wherever it is.
    private func network(ofPeer peer: String, _ header: ProxyHeader?) -> NetworkAddress? {
        guard configuration.networkConnectionsMax > 0,
            let address = header.map(\.address) ?? NetworkAddress(endpoint: peer),
            header != nil || configuration.countsPrivateNetworks || !address.isPrivate,
            !configuration.trustedProxies.contains(address)
        else { return nil }
        return address.network
    }

    /// Whether the peer is a trusted proxy.
    func trusts(_ peer: String) -> Bool {
        NetworkAddress(endpoint: peer).map { configuration.trustedProxies.contains($0) } ?? false
    }

    /// Counts a connection for the client that a trusted proxy names, if that may have one more.
    func enter(_ header: ProxyHeader) -> Bool {
        let isWithinLimit = shared.networks.enter(network(ofPeer: "", header))
        if !isWithinLimit { statistics.networkConnectionsRefused &+= 1 }
        return isWithinLimit
    }

    private func refuseNetwork(_ channel: Channel) {
        shared.closeConnection()
        statistics.networkConnectionsRefused &+= 1
        guard shared.openRefusal(max: configuration.refusalsMax) else { return channel.close(.tooManyConnections) }
        refuse(channel, .tooManyOfNetwork(configuration.networkConnectionsMax))
    }

    private func open(_ channel: Channel, _ socket: SocketKind, _ rpcs: RPCTable) {
        let peer = channel.peerAddress
        statistics.connectionsOpened &+= 1
        configuration.onEvent(.connectionOpened(peer: peer))
        let driver = OpeningConnection(
            channel: channel, server: self, peerAddress: peer, socket: socket, rpcs: rpcs)
        opening[ObjectIdentifier(driver)] = driver
        channel.driver = driver
        channel.startReading()
    }

    private func refuse(_ channel: Channel, _ refusal: ConnectionRefusal) {
        statistics.connectionsRefused &+= 1
        configuration.onEvent(.connectionRefused(peer: channel.peerAddress))
        channel.driver = RefusedConnection(
            channel: channel, refusal, afterMilliseconds: configuration.refusalMilliseconds
        ) { [shared] _ in shared.closeRefusal() }
        channel.startReading()
    }

    /// The first bytes of a connection show that it is not served. It stays among those that are opening.
    func refuse(_ driver: OpeningConnection, _ refusal: ConnectionRefusal, peerAddress: String) {
        driver.channel.driver = RefusedConnection(
            channel: driver.channel, refusal, afterMilliseconds: configuration.refusalMilliseconds
        ) { [self] reason in openingEnded(driver, peerAddress: peerAddress, reason) }
    }

    /// Replaces the driver that waited for the first bytes by that of a protocol; false when the protocol is not
    /// served.
    func install(
        _ wireProtocol: WireProtocol, on channel: Channel, rpcs: RPCTable, peerAddress: String, openedAt: UInt64,
        insteadOf driver: OpeningConnection
    ) -> Bool {
        let core = ConnectionCore(
            channel: channel, handler: services.calls, owner: self, configuration: configuration,
            peerAddress: peerAddress, proxyHeader: driver.proxyHeader, socket: driver.socket, openedAt: openedAt)
        let connection: any CallConnection
        switch (wireProtocol, services.http) {
        case (.hearth, _):
            connection = ServerConnection(core, rpcs: rpcs)
            if driver.socket != .administration { configuration.onEvent(.clientSeen(agent: "hearth")) }
        case (.http2, let http): connection = HTTP2Connection(core, rpcs: rpcs, http: http, date: date)
        case (.http1, let http?): connection = HTTP1Connection(core, http: http, date: date)
        case (.http1, nil), (.unknown, _): return false
        }
        opening[ObjectIdentifier(driver)] = nil
        connections[ObjectIdentifier(connection)] = connection
        channel.driver = connection
        return true
    }

    func countAssembled(_ bytes: Int) -> Int { shared.countAssembled(bytes) }

    func countKeptBack(_ bytes: Int) -> Int { shared.countKeptBack(bytes) }

    func connectionEnded(_ connection: some CallConnection, _ reason: CloseReason) {
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        statistics.calls &+= connection.core.state.callsBegun
        ended(connection.channel, connection.peerAddress, connection.core.proxyHeader, reason)
    }

    /// Gives up the handshake of this loop that has lasted longest, for another one.
    ///
    /// - Returns: whether there was one.
    func endLongestHandshake() -> Bool {
        let longest = opening.values.filter(\.isShakingHands).min { $0.openedAt < $1.openedAt }
        longest?.tooManyHandshakes()
        return longest != nil
    }

    func openingEnded(_ driver: OpeningConnection, peerAddress: String, _ reason: CloseReason) {
        guard opening.removeValue(forKey: ObjectIdentifier(driver)) != nil else { return }
        ended(driver.channel, peerAddress, driver.proxyHeader, reason)
    }

    private func ended(
        _ channel: Channel, _ peerAddress: String, _ header: ProxyHeader?, _ reason: CloseReason
    ) {
        statistics.bytesReceived &+= channel.bytesReceived
        statistics.bytesSent &+= channel.bytesSent
        shared.closeConnection()
        shared.networks.leave(network(ofPeer: peerAddress, header))
        configuration.onEvent(.connectionClosed(peer: peerAddress, reason))
        reportIfEmpty()
    }

    /// The counters now, open connections included.
    func snapshot() -> ServerStatistics {
        var all = statistics
        all.connectionsOpen = UInt64(connections.count + opening.count)
        all.longestIterations[loop.name] = loop.longestIterationNanoseconds
        for connection in connections.values {
            all.calls &+= connection.core.state.callsBegun
            all.callsOpen &+= UInt64(connection.openCalls)
            switch connection {
            case is HTTP1Connection: all.http1ConnectionsOpen &+= 1
            case is HTTP2Connection: all.http2ConnectionsOpen &+= 1
            default: all.hearthConnectionsOpen &+= 1
            }
        }
        for channel in connections.values.map({ $0.channel }) + opening.values.map(\.channel) {
            all.bytesReceived &+= channel.bytesReceived
            all.bytesSent &+= channel.bytesSent
        }
        return all
    }

    // MARK: Ending

    /// Accepts nothing more, lets the open calls finish for `graceMilliseconds`, and says when no connection is left.
    func drain(graceMilliseconds: UInt64, _ done: @escaping () -> Void) {
        isDraining = true
        onEmpty = done
        listener?.close()
        listener = nil
        for (listener, file) in local {
            // First the file: when the listener is closed, another server may take the path.
            file.remove()
            listener.close()
        }
        local = []
        for driver in opening.values { driver.end() }
        for connection in connections.values { connection.drain() }
        loop.schedule(afterMilliseconds: graceMilliseconds) { [weak self] in self?.abandon() }
        reportIfEmpty()
    }

    /// Ends what is left after the time of grace, and cuts connections whose clients do not even read that.
    private func abandon() {
        for connection in connections.values { connection.abandon() }
        loop.schedule(afterMilliseconds: Self.finalStatusMilliseconds) { [weak self] in
            guard let self else { return }
            for connection in connections.values { connection.channel.close(.stopped) }
        }
    }

    private func reportIfEmpty() {
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
    private let keptBack = Atomic<Int>(0)
    private let handshakes = Atomic<Int>(0)
    /// Open connections by network.
    let networks: NetworkCounts

    init(networkConnectionsMax: Int = 0) { networks = NetworkCounts(max: networkConnectionsMax) }

    /// Counts bytes of incomplete messages, or discounts them; returns the sum over all connections.
    func countAssembled(_ bytes: Int) -> Int { assembling.wrappingAdd(bytes, ordering: .relaxed).newValue }

    /// Counts bytes of replies that streams keep back, or discounts them; returns the sum over all connections.
    func countKeptBack(_ bytes: Int) -> Int { keptBack.wrappingAdd(bytes, ordering: .relaxed).newValue }

    /// Counts a new connection, if there may be one more.
    func openConnection(max: Int) -> Bool { Self.count(open, max) }
    func closeConnection() { open.wrappingSubtract(1, ordering: .relaxed) }

    /// Counts a connection that is to be refused in its own protocol, if there may be one more.
    func openRefusal(max: Int) -> Bool { Self.count(refused, max) }
    func closeRefusal() { refused.wrappingSubtract(1, ordering: .relaxed) }

    /// Counts a handshake of TLS that begins, if there may be one more.
    func beginHandshake(max: Int) -> Bool { Self.count(handshakes, max) }
    func endHandshake() { handshakes.wrappingSubtract(1, ordering: .relaxed) }

    private static func count(_ counter: borrowing Atomic<Int>, _ max: Int) -> Bool {
        if counter.wrappingAdd(1, ordering: .relaxed).newValue <= max { return true }
        counter.wrappingSubtract(1, ordering: .relaxed)
        return false
    }
}
