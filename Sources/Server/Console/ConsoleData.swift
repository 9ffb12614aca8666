internal import Authorization
internal import Basics
internal import DocumentJSON
internal import DocumentModel
internal import DocumentStore
internal import EventLoops
internal import FirestoreJSON
internal import FirestoreService
internal import Storage
internal import Synchronization

/// What the views of the console show. Thread-safe; all loops share one.
final class ConsoleData: Sendable {
    private let stores: [ServedStore]
    private let counters: [ServiceCounters]
    private let readiness: Readiness
    private let version: String
    private let address: ServerAddress
    private let authorization: Authorization?
    private let history: ConsoleHistory
    private let changes: ConsoleChanges
    let backups: ConsoleBackups
    private let clients: KnownClients
    private let loops: [EventLoop]
    /// The routers of the loops; set once the server runs.
    private let routers = Mutex<[LoopBound<CallRouter>]>([])

    init(
        _ administration: AdminService.Context, counters: [ServiceCounters], readiness: Readiness, version: String,
        loops: [EventLoop], clients: KnownClients, backupDirectory: String?, _ authorization: Authorization?
    ) {
        stores = administration.stores
        address = administration.address
        self.counters = counters
        self.readiness = readiness
        self.version = version
        self.loops = loops
        self.clients = clients
        self.authorization = authorization
        history = ConsoleHistory(stores, counters: counters)
        changes = ConsoleChanges(stores)
        backups = ConsoleBackups(
            administration.served, administration.log, directory: stores.count == 1 ? backupDirectory : nil)
    }

    private var store: DocumentStore { stores[0].store }

    /// Starts the samples.
    ///
    /// - Parameter routers: of the loops, in their order.
    func start(_ routers: [LoopBound<CallRouter>]) {
        self.routers.withLock { $0 = routers }
        guard let loop = loops.first else { return }
        loop.execute { [weak self] in self?.sample(loop) }
    }

    private func sample(_ loop: EventLoop) {
        history.sample()
        changes.tick()
        loop.schedule(afterMilliseconds: UInt64(ConsoleHistory.intervalSeconds) * 1_000) { [weak self] in
            self?.sample(loop)
        }
    }

    /// Gives the JSON of a name to `done`, on the loop, now or later.
    ///
    /// - Throws: `NOT_FOUND` for a name that there is not, `INVALID_ARGUMENT`.
    func show(
        _ name: String, _ parameters: [Parameter], on loop: EventLoop, _ done: @escaping (JSONValue) -> Void
    ) throws(RequestError) {
        let values = Dictionary(parameters.map { ($0.name, $0.value) }) { first, _ in first }
        switch name {
        case "state": done(state)
        case "history": done(history.json)
        case "changes":
            let version = values["after"].flatMap { UInt64($0) } ?? 0
            done(changes.json(after: version, path: values["path"] ?? ""))
        case "backups": done(backups.json)
        case "listeners":
            gather(on: loop, \.listeners) { done(.object(["listeners": .array($0.map(\.json))])) }
        case "queries":
            gather(on: loop, \.queryCosts) { done(.object(["queries": .array(QueryCost.joined($0).map(\.json))])) }
        default: throw RequestError(.notFound, "The console has no data of this name.")
        }
    }

    private var state: JSONValue {
        let totals = CounterTotals(counters)
        let statistics = stores.map(\.store.statistics)
        let commits: UInt64 = statistics.reduce(0) { $0 &+ $1.commits }
        let expired: UInt64 = statistics.reduce(0) { $0 &+ $1.documentsExpired }
        let databases = stores.flatMap(\.store.databaseNames).map { "\($0)" }.sorted()
        return .object([
            "version": .string(version), "address": .string(address.text),
            "mode": .string(authorization?.state.authenticator.mode.rawValue ?? "open"),
            "hasRules": .boolean(authorization?.state.ruleset != nil),
            "problem": readiness.notReadyReason.map { .string($0) } ?? .null,
            "databases": .array(databases.map { .string($0) }),
            "nowMicroseconds": .integer(Int64(clamping: store.currentReadTime)),
            "oldestMicroseconds": .integer(Int64(clamping: store.oldestReadTime)),
            "commits": .integer(Int64(clamping: commits)),
            "documentsExpired": .integer(Int64(clamping: expired)),
            "documentsRead": .integer(Int64(clamping: totals["documents_read"] ?? 0)),
            "clients": .object(clients.counts.mapValues { .integer(Int64(clamping: $0)) }),
        ])
    }

    // MARK: What loops know

    /// Parts of the answer that loops still owe.
    private final class Gathered<Element: Sendable>: Sendable {
        let state: Mutex<(missing: Int, elements: [Element])>

        init(_ missing: Int) { state = Mutex((missing, [])) }
    }

    /// Asks the router of each loop, and gives all answers to `done` on the loop.
    private func gather<Element: Sendable>(
        on loop: EventLoop, _ read: @escaping @Sendable (CallRouter) -> [Element],
        _ done: @escaping ([Element]) -> Void
    ) {
        let routers = routers.withLock { $0 }
        // The server is starting.
        if routers.isEmpty { return done([]) }
        let gathered = Gathered<Element>(routers.count)
        let bound = LoopBound(done)
        for (other, router) in zip(loops, routers) {
            other.execute {
                let elements = read(router.value)
                let all = gathered.state.withLock { state in
                    state.missing -= 1
                    state.elements += elements
                    return state.missing == 0 ? state.elements : nil
                }
                guard let all else { return }
                loop.execute { bound.value(all) }
            }
        }
    }
}

extension QueryCost {
    /// Forms that the console shows.
    private static let shownMax = 100

    /// The costs of all loops by form, the most documents first.
    fileprivate static func joined(_ costs: [QueryCost]) -> [QueryCost] {
        var joined: [[String]: QueryCost] = [:]
        for cost in costs {
            let key = [cost.database, cost.form]
            guard var sum = joined[key] else {
                joined[key] = cost
                continue
            }
            sum.documents &+= cost.documents
            sum.runs &+= cost.runs
            joined[key] = sum
        }
        let sorted = joined.values.sorted { ($0.documents, $0.runs, $1.form) > ($1.documents, $1.runs, $0.form) }
        return Array(sorted.prefix(shownMax))
    }

    fileprivate var json: JSONValue {
        .object([
            "database": .string(database), "form": .string(form),
            "documents": .integer(Int64(clamping: documents)), "runs": .integer(Int64(clamping: runs)),
        ])
    }
}

extension ListenerDescription {
    fileprivate var json: JSONValue {
        .object([
            "client": .string(client), "caller": .string(caller), "database": .string(database),
            "sinceMicroseconds": .integer(sinceMicroseconds), "messages": .integer(Int64(clamping: messages)),
            "documentsRead": .integer(Int64(clamping: documentsRead)),
            "documentsLastHour": .integer(Int64(clamping: documentsLastHour)),
            "targets": .array(targets.map { .string($0) }),
        ])
    }
}
