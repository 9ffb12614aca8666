// A running server: the store, the event loops, the listeners, and their shutdown.

package import Authorization
package import Connections
internal import Dispatch
package import DocumentStore
internal import EventLoops
package import FileSystem
package import FirestoreService
package import HTTPProtocols
package import Identity
internal import Storage

/// The settings of a server.
package struct DatabaseServerConfiguration: Sendable {
    package var store: StoreConfiguration
    /// What the store is called where there are several.
    package var storeName = "main"
    /// Whether the server is to start without it: it is opened later.
    package var storeIsAway = false
    /// Stores beside the first one.
    package var furtherStores: [StoreSettings] = []
    /// Which of several stores has a database; nil if there is one store.
    package var places: (any DatabasePlaces)?
    /// Where the socket for administration is; nil for the directory of the store.
    package var socketDirectory: String?
    package var transport = ServerConfiguration()
    /// A Unix socket for services on this machine; nil without one.
    package var unixSocket: UnixSocketOptions?
    package var service = ServiceLimits()
    package var http = HTTPOptions()
    /// A plain port for metrics and health alone; nil serves them on the main port.
    package var observation: ObservationOptions?
    package var webChannel = WebChannelLimits()
    /// What /metrics says about the build.
    package var version = "unknown"
    /// Event loops, each a thread.
    package var loops = 1
    /// What the server shall take of memory, in bytes; the bounds of its parts follow from it. Nil if none was given.
    package var memoryBudget: Int?
    /// How long a drain waits for calls under way before it ends them.
    package var drainMilliseconds = 10_000
    /// Time between two lines of figures in the log; 0 writes none.
    package var summaryMilliseconds = 60_000
    /// Decides who may do what; nil permits everything to everyone.
    package var authorization: Authorization?
    /// The rules of the data directory, and the number of those in force; nil if the server has nothing to do with
    /// them.
    package var rules: (keeper: RulesKeeper, number: Int?)?
    /// Revokes users; nil if the server has nothing to do with them.
    package var revocations: RevocationKeeper?
    /// Disk space for rules and revocations, which the first store lends from its reserve.
    package var spareSpace = SpareSpace()
    /// Who takes the writes; nil if this server always does, or refuses them.
    package var leader: KnownLeader?
    /// Whether reads of this server see everything that was acknowledged anywhere, where another takes the writes.
    package var readsAreStrict = false
    /// Strict reads do without asking while the state of this server is younger, in microseconds.
    package var staleReadsMax: UInt64 = 0
    package var log: Log

    /// The data directories of all stores.
    package var storeDirectories: [String] { [store.directory] + furtherStores.map(\.store.directory) }

    package init(store: StoreConfiguration, log: Log) {
        self.store = store
        self.log = log
    }
}

/// A store of a server that has several.
package struct StoreSettings: Sendable {
    package let name: String
    package let store: StoreConfiguration
    package let leader: KnownLeader?
    /// Whether the server is to start without the store, which is opened later.
    package let isAway: Bool

    /// - Parameters:
    ///   - name: that no other store of the server has.
    ///   - leader: who takes the writes; nil if this server always does.
    package init(name: String, store: StoreConfiguration, leader: KnownLeader? = nil, isAway: Bool = false) {
        self.name = name
        self.store = store
        self.leader = leader
        self.isAway = isAway
    }
}

/// The limit of file descriptors leaves none for connections.
package struct TooFewDescriptors: Error, CustomStringConvertible {
    /// Descriptors that the process may have, and that it needs for a single connection.
    let limit: Int
    let needed: Int

    package var description: String {
        "the limit of \(limit) file descriptors (ulimit -n) is too low; at least \(needed) are needed"
    }
}

/// A server that runs until it is stopped.
///
/// Thread-safe. The order of its end is the promise of SIGTERM: nothing new is accepted, accepted calls get their
/// replies, the loops end, and then the store writes everything to a run and frees the directory.
package final class DatabaseServer: Sendable {
    /// Where it listens; the port that the system picked where the configuration said 0.
    package var host: String { server.host }
    package var port: UInt16 { server.port }
    /// The port for observation; nil without one.
    package var observationPort: UInt16? { observation?.port }
    /// The stores, each of which may be closed and opened again.
    package let stores: [ServedStore]
    /// The first store.
    package var store: DocumentStore { stores[0].store }

    private let configuration: DatabaseServerConfiguration
    private let log: Log
    private let group: EventLoopGroup
    private let server: SocketServer
    /// The port for observation.
    private let observation: SocketServer?
    private let counters: [ServiceCounters]
    private let metrics: MetricsPage
    private let readiness: Readiness
    private let routers: [LoopBound<CallRouter>]
    private let housekeeping: HousekeepingThread
    private let pulse: LoopPulse

    private init(
        _ configuration: DatabaseServerConfiguration, _ stores: [ServedStore], group: EventLoopGroup,
        server: SocketServer, observation: SocketServer?, counters: [ServiceCounters], metrics: MetricsPage,
        readiness: Readiness, routers: [LoopBound<CallRouter>], housekeeping: HousekeepingThread
    ) {
        self.configuration = configuration
        self.log = configuration.log
        self.stores = stores
        self.group = group
        self.server = server
        self.observation = observation
        self.counters = counters
        self.metrics = metrics
        self.readiness = readiness
        self.routers = routers
        self.housekeeping = housekeeping
        pulse = LoopPulse(group.loops)
    }

    /// Opens the stores, recovering them if need be, and serves from when this returns.
    ///
    /// - Throws: `StorageError` and others of the store when the directory cannot be opened, `SocketError` when the
    ///   port cannot be had, `TooFewDescriptors` when the limit of file descriptors leaves none for connections.
    package static func start(_ configuration: DatabaseServerConfiguration) throws -> DatabaseServer {
        let log = configuration.log
        let stores = try open(configuration)
        configuration.spareSpace.lend(
            in: { [first = stores[0]] () throws(StorageError) in try first.store.checkPlace() },
            { [first = stores[0]] in first.store.releaseReserve($0) })
        let group = EventLoopGroup(count: configuration.loops)
        var transport = configuration.transport
        let clients = KnownClients()
        transport.onEvent = { event in
            if case .clientSeen(let agent) = event { clients.note(agent: agent) }
            Self.write(event, to: log)
        }
        transport.keepsAuthorization = configuration.authorization != nil
        let counters = group.loops.map { _ in ServiceCounters() }
        do {
            try configuration.rules?.keeper.checkNewest(is: configuration.rules?.number)
            try limitConnections(of: &transport, besides: configuration.observation, log)
            let sessions = WebChannelTable(limits: configuration.webChannel)
            let collections = CollectionTable()
            let metrics = MetricsPage(
                counters: counters, stores, sessions: sessions, version: configuration.version,
                collections: collections,
                listenerBytesMax: group.loops.count * configuration.service.listeners.heldBytesMax,
                memoryBudget: configuration.memoryBudget,
                limited: { [authorization = configuration.authorization] in authorization?.limitedRequests ?? [] },
                tls: configuration.transport.tls)
            let readiness = Readiness(stores)
            let pages = ServerPages(readiness: readiness, metrics: metrics)
            var http = configuration.http
            http.servesMetrics = configuration.observation == nil
            let administration = AdminService.Context(
                stores: stores, served: stores[0], log: log, address: ServerAddress(),
                rules: configuration.rules?.keeper, revocations: configuration.revocations,
                authorization: configuration.authorization)
            let console = ConsoleData(
                administration, counters: counters, readiness: readiness, version: configuration.version,
                loops: group.loops, clients: clients, backupDirectory: http.backupDirectory,
                configuration.authorization)
            var routers: [LoopBound<CallRouter>] = []
            let server = try SocketServer.start(transport, rpcs: .overTCP, on: group) { loop in
                // One service for each loop, whichever protocol its clients use.
                let own = counters[routers.count]
                let loopStores = stores.map { served in
                    let store = LoopStore(served) { served in
                        Self.services(of: served, configuration, administration, own, on: loop)
                    }
                    served.attach(store, on: loop)
                    return store
                }
                let router = CallRouter(
                    LoopStores(loopStores, configuration.places, on: loop), own, configuration.authorization)
                let bound = LoopBound(router)
                loop.execute { bound.value.checkAccess(on: loop) }
                routers.append(bound)
                let bodies = JSONBodies()
                return LoopServices(
                    calls: router,
                    http: HTTPRequestHandler(
                        calls: router, pages: pages, sessions: sessions, options: http,
                        authorization: configuration.authorization, address: { administration.address.text },
                        bodies: bodies,
                        console: http.servesConsole
                            ? ConsoleHandler(console, router, bodies, configuration.authorization) : nil,
                        clients: clients))
            }
            metrics.setServer(server)
            if http.servesConsole { console.start(routers) }
            let host = server.host.contains(":") ? "[\(server.host)]" : server.host
            administration.address.text = "\(host):\(server.port)"
            if http.servesConsole {
                let isEncrypted = transport.tls != nil
                let name = ["0.0.0.0", "[::]"].contains(host) ? "localhost" : host
                log.console.server = "\(isEncrypted ? "https" : "http")://\(name):\(server.port)"
            }
            listenLocally(server, in: configuration.socketDirectory ?? configuration.store.directory, log)
            let observation = try configuration.observation.map { options throws(SocketError) in
                try listen(for: options, besides: transport, pages, routers, on: group)
            }
            if let socket = configuration.unixSocket { try server.listen(socket) }
            let running = DatabaseServer(
                configuration, stores, group: group, server: server, observation: observation, counters: counters,
                metrics: metrics, readiness: readiness, routers: routers,
                housekeeping: try HousekeepingThread(stores, collections, log: log))
            running.scheduleSummary()
            return running
        } catch {
            group.stop()
            for served in stores { served.store.close() }
            throw error
        }
    }

    private static func open(_ configuration: DatabaseServerConfiguration) throws -> [ServedStore] {
        let first = StoreSettings(
            name: configuration.storeName, store: configuration.store, leader: configuration.leader,
            isAway: configuration.storeIsAway)
        var stores: [ServedStore] = []
        do {
            for settings in [first] + configuration.furtherStores {
                stores.append(
                    settings.isAway
                        ? try ServedStore(away: settings.name, settings.store, leader: settings.leader)
                        : ServedStore(
                            name: settings.name, try DocumentStore.open(settings.store), leader: settings.leader))
            }
            return stores
        } catch {
            for served in stores { served.store.close() }
            throw error
        }
    }

    /// The services of a store, as it is now, on a loop.
    private static func services(
        of served: ServedStore, _ configuration: DatabaseServerConfiguration, _ administration: AdminService.Context,
        _ counters: ServiceCounters, on loop: EventLoop
    ) -> LoopStore.Services {
        let (store, leader) = (served.store, served.leader)
        let service = FirestoreService(
            store: store, limits: configuration.service, accessControl: configuration.authorization,
            counters: counters, log: configuration.log)
        let link = leader.map { leader in
            LeaderLink(
                LeaderLink.Context(
                    leader: leader, storeName: configuration.places == nil ? "" : served.name,
                    authorization: configuration.authorization, store: store,
                    readsAreStrict: configuration.readsAreStrict, staleReadsMax: configuration.staleReadsMax,
                    log: configuration.log), service, on: loop)
        }
        service.forwarder = link
        var administration = administration
        administration.served = served
        return LoopStore.Services(
            firestore: service, administration: AdminService(administration, service),
            indexes: IndexAdminService(store, administration.stores, configuration.log, service), link: link,
            leader: leader)
    }

    /// Listens on the port for observation.
    ///
    /// - Parameter routers: of the loops, in their order.
    private static func listen(
        for options: ObservationOptions, besides main: ServerConfiguration, _ pages: ServerPages,
        _ routers: [LoopBound<CallRouter>], on group: EventLoopGroup
    ) throws(SocketError) -> SocketServer {
        var index = 0
        return try SocketServer.start(options.transport(besides: main), rpcs: .observation, on: group) { _ in
            defer { index += 1 }
            return LoopServices(
                calls: ObservationCalls(routers[index].value),
                http: ObservationHandler(pages: pages, options: options))
        }
    }

    /// Listens on the socket in the data directory. A server that cannot logs a warning and serves without it.
    private static func listenLocally(_ server: SocketServer, in directory: String, _ log: Log) {
        do throws(SocketError) {
            try server.administrate(atSocket: AdminSocket.path(in: directory), rpcs: .local)
        } catch {
            log(.warning, "admin_socket_failed", ["message": error.description])
        }
    }

    /// Lowers the number of connections to what the limit of file descriptors permits: without a descriptor the store
    /// could not continue.
    ///
    /// - Parameter observation: a further port with connections of a number that is fixed; nil without one.
    private static func limitConnections(
        of transport: inout ServerConfiguration, besides observation: ObservationOptions?, _ log: Log
    ) throws(TooFewDescriptors) {
        let limit = DescriptorLimit.current
        let others = observation == nil ? 0 : ObservationOptions.connectionsMax + ObservationOptions.refusalsMax
        let inUse = DescriptorBudget.descriptorsInUse() + others
        guard
            let budget = DescriptorBudget(
                connections: transport.connectionsMax, refusals: transport.refusalsMax, limit: limit, inUse: inUse)
        else { throw TooFewDescriptors(limit: limit, needed: inUse + DescriptorBudget.reserve + 1) }
        if budget.connections < transport.connectionsMax {
            log(
                .warning, "connections_capped",
                [
                    "asked": String(transport.connectionsMax), "connections": String(budget.connections),
                    "descriptors": String(limit),
                ])
        }
        transport.connectionsMax = budget.connections
        transport.refusalsMax = budget.refusals
    }

    /// Stops accepting, answers what was accepted, closes the store. Returns when all of that is done.
    ///
    /// Blocks; not for the thread of a loop.
    package func stop() {
        readiness.drain()
        for (loop, router) in zip(group.loops, routers) { loop.execute { router.value.stopServing() } }
        let drained = DispatchSemaphore(value: 0)
        server.drain(graceMilliseconds: UInt64(configuration.drainMilliseconds)) { drained.signal() }
        drained.wait()
        closeLinks()
        housekeeping.stop()
        stopObserving()
        metrics.setServer(nil)
        configuration.http.emulatorFiles?.stop()
        group.stop()
        logSummary()
        for served in stores {
            served.store.close()
            served.detach()
        }
        log.reportSuppressed()
    }

    /// Closes the connections to the server that takes the writes.
    private func closeLinks() {
        for (loop, router) in zip(group.loops, routers) {
            let closed = DispatchSemaphore(value: 0)
            loop.execute {
                router.value.stores.closeLinks()
                closed.signal()
            }
            closed.wait()
        }
    }

    /// Whether every event loop has run since the last time that this was true. To be asked again and again, by one
    /// thread that is not a loop's; the first answer is true.
    package func loopsRun() -> Bool { pulse.beat() }

    /// How long an answer on the port for observation may take while the server stops, in milliseconds.
    private static let lastObservationMilliseconds: UInt64 = 1_000

    /// Closes the port for observation, which shows until then that the server drains.
    private func stopObserving() {
        guard let observation else { return }
        let drained = DispatchSemaphore(value: 0)
        observation.drain(graceMilliseconds: Self.lastObservationMilliseconds) { drained.signal() }
        drained.wait()
    }

    /// What the service counted so far, on all loops.
    package var totals: CounterTotals { CounterTotals(counters) }

    // MARK: Summary in the log

    private func scheduleSummary() {
        guard configuration.summaryMilliseconds > 0, let loop = group.loops.first else { return }
        let interval = UInt64(configuration.summaryMilliseconds)
        loop.execute { [weak self] in
            loop.schedule(afterMilliseconds: interval) {
                self?.logSummary()
                self?.scheduleSummary()
            }
        }
    }

    private func logSummary() {
        guard log.level <= .info else { return }
        var pairs = totals.values.map { ($0.name, String($0.value)) }
        let all = stores.map(\.store.statistics)
        func append<Value: BinaryInteger>(_ name: String, _ value: (StoreStatistics) -> Value) {
            pairs.append((name, String(all.reduce(0) { $0 + value($1) })))
        }
        append("commits", \.commits)
        append("documents_written", \.documentsWritten)
        append("documents_expired", \.documentsExpired)
        append("commit_groups", \.groups)
        append("transactions_open", \.transactionsOpen)
        append("transactions_aborted", \.transactionsAborted)
        append("requests_queued", \.requestsQueued)
        log.write(.info, "statistics", pairs)
    }

    private static func write(_ event: ServerEvent, to log: Log) {
        switch event {
        case .connectionOpened(let peer): log(.debug, "connection_opened", ["peer": peer])
        case .connectionClosed(let peer, let reason):
            log(.debug, "connection_closed", ["peer": peer, "reason": "\(reason)"])
        case .connectionRefused(let peer): log(.warning, "connection_refused", ["peer": peer])
        case .acceptFailed(let text): log(.error, "accept_failed", ["message": text])
        case .clientSeen(let agent): log(.debug, "client_seen", ["agent": agent])
        case .callRefused(let peer, let refusal):
            log(.debug, "call_refused", ["peer": peer, "code": "\(refusal.code)", "message": refusal.description])
        }
    }
}
