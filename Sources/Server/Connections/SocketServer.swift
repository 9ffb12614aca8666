// A server: listeners on every loop, connections that stay on the loop that got them, an orderly end.

package import Calls
package import Connections
package import EventLoops
import Synchronization

/// Serves a ``ServiceHandler`` over the native protocol and gRPC, and an ``HTTPHandler`` over HTTP/1.1 and HTTP/2.
/// Thread-safe.
package final class SocketServer: Sendable {
    /// The port that is listened on; the one that the system picked when the configuration said 0.
    package let port: UInt16
    package let host: String
    private let loops: [ServerLoop]

    /// Names of the protocols of the port for ALPN, the preferred one first.
    package static let protocolNames = WireProtocol.names

    private init(host: String, port: UInt16, loops: [ServerLoop]) {
        self.host = host
        self.port = port
        self.loops = loops
    }

    /// Listens, and serves from when this returns.
    ///
    /// - Parameters:
    ///   - rpcs: the procedures that calls may name.
    ///   - group: the loops to serve on; they must be started, and outlive the server.
    ///   - makeServices: makes what serves one loop; called here, once for each. It is used on that loop's thread only.
    /// - Throws: when the host is unknown or the port cannot be had.
    package static func start(
        _ configuration: ServerConfiguration, rpcs: RPCTable, on group: EventLoopGroup,
        makeServices: (EventLoop) -> LoopServices
    ) throws(SocketError) -> SocketServer {
        let sharesPort = configuration.acceptance == .everyLoop
        let (sockets, port) = try openSockets(configuration, count: sharesPort ? group.loops.count : 1, sharesPort)
        let shared = ServerShared(networkConnectionsMax: configuration.networkConnectionsMax)
        let loops = group.loops.map {
            ServerLoop(loop: $0, configuration: configuration, rpcs: rpcs, shared: shared, services: makeServices($0))
        }
        let server = SocketServer(host: configuration.host, port: port, loops: loops)
        for (index, socket) in sockets.enumerated() {
            let own = loops[index]
            own.loop.execute {
                own.listen(on: socket, accepted: sharesPort ? { own.adopt($0) } : handOver(to: loops, from: own, .tcp))
            }
        }
        return server
    }

    /// Listens on a Unix socket too, for the administration by programs of the same user. Not after `drain`.
    ///
    /// - Parameters:
    ///   - path: of the socket's file, which this server owns from now on: one that is left from an earlier process is
    ///     replaced, and `drain` removes it.
    ///   - rpcs: the procedures that calls over it may name.
    package func administrate(atSocket path: String, rpcs: RPCTable) throws(SocketError) {
        let descriptor = try LocalSocket.listen(at: path)
        let (own, file) = (loops[0], LocalSocketFile(path))
        own.loop.execute {
            own.listen(atSocket: file, on: descriptor) { [unowned own] in own.adopt($0, .administration, rpcs) }
        }
    }

    /// Listens on a Unix socket too, for services on this machine. Not after `drain`, which removes the file.
    ///
    /// - Throws: if another process listens on the path, if a file that is not a socket has it, and if the system does
    ///   not permit the socket or its permissions.
    package func listen(_ options: UnixSocketOptions) throws(SocketError) {
        try LocalSocket.checkIsFree(options.path)
        let (own, loops) = (loops[0], loops)
        let descriptor = try LocalSocket.listen(
            at: options.path, options.permissions, backlog: own.configuration.backlog)
        let file = LocalSocketFile(options.path)
        own.loop.execute {
            own.listen(atSocket: file, on: descriptor, accepted: Self.handOver(to: loops, from: own, .unix))
        }
    }

    /// One listening socket for each loop, all on one port.
    private static func openSockets(
        _ configuration: ServerConfiguration, count: Int, _ sharesPort: Bool
    ) throws(SocketError) -> ([Int32], UInt16) {
        let address = try SocketAddress.resolve(configuration.host, port: configuration.port)[0]
        var sockets: [Int32] = []
        var port = configuration.port
        if sharesPort, port != 0 { try refuseOccupied(address, port) }
        do throws(SocketError) {
            for _ in 0..<count {
                let socket = try SocketAddress.listen(
                    on: address, port: port, sharesPort: sharesPort, backlog: configuration.backlog)
                sockets.append(socket.descriptor)
                port = socket.port
            }
        } catch {
            sockets.forEach(closeDescriptor)
            throw error
        }
        return (sockets, port)
    }

    /// Throws when another process listens on the port: sockets that share a port would let it, and get half of its
    /// clients.
    private static func refuseOccupied(_ address: ResolvedAddress, _ port: UInt16) throws(SocketError) {
        let probe = try SocketAddress.listen(on: address, port: port, sharesPort: false, backlog: 1)
        closeDescriptor(probe.descriptor)
    }

    /// Gives each accepted connection to the next loop in turn.
    private static func handOver(
        to loops: [ServerLoop], from acceptor: ServerLoop, _ socket: SocketKind
    ) -> (Int32) -> Void {
        var turn = 0
        return { descriptor in
            let target = loops[turn % loops.count]
            turn += 1
            guard target !== acceptor else { return acceptor.adopt(descriptor, socket) }
            target.loop.execute { target.adopt(descriptor, socket) }
        }
    }

    /// Stops accepting, lets calls that were accepted finish, closes each connection after its last call.
    ///
    /// - Parameters:
    ///   - graceMilliseconds: calls not finished by then end with UNAVAILABLE.
    ///   - done: called once, on some loop's thread, when no connection is left.
    package func drain(graceMilliseconds: UInt64, _ done: @escaping @Sendable () -> Void) {
        let gathered = Gathering(parts: loops.count)
        for own in loops {
            own.loop.execute {
                own.drain(graceMilliseconds: graceMilliseconds) {
                    if gathered.add(ServerStatistics()) != nil { done() }
                }
            }
        }
    }

    /// Gives `body` the sum of all counters, on some loop's thread.
    package func statistics(_ body: @escaping @Sendable (ServerStatistics) -> Void) {
        let gathered = Gathering(parts: loops.count)
        for own in loops {
            own.loop.execute { if let all = gathered.add(own.snapshot()) { body(all) } }
        }
    }
}

/// Collects one part from each loop, and gives the whole to the last of them.
private final class Gathering: Sendable {
    private let state: Mutex<(missing: Int, sum: ServerStatistics)>

    init(parts: Int) { state = Mutex((parts, ServerStatistics())) }

    func add(_ part: ServerStatistics) -> ServerStatistics? {
        state.withLock { state in
            state.sum.add(part)
            state.missing -= 1
            return state.missing == 0 ? state.sum : nil
        }
    }
}
