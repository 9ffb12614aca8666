// The stores of a server on one loop, and the way of a call to the one that has its database.
//
//     request ──► name ──► known here ──────────────────────────► services of the store
//                            └── not known, or moved: asked, the call waits ──┘
//
// While a call waits, later calls for the same database wait too: calls of a connection keep their order.

internal import Basics
internal import Calls
internal import DocumentModel
internal import EventLoops
internal import FirestoreMessages
internal import FirestoreService
internal import Storage

/// Confined to its loop.
final class LoopStores {
    typealias Continuation = (Result<LoopStore, RequestError>) -> Void

    /// At least one; the first has what no other one has.
    let all: [LoopStore]
    /// Which of them has a database; nil if there is one.
    let places: (any DatabasePlaces)?
    private let loop: EventLoop
    /// The store of the database that was named last.
    private var last: (name: DatabaseName, store: LoopStore)?
    /// Those of databases that calls of this loop were about.
    private var known: [DatabaseName: LoopStore] = [:]
    /// Databases that calls of this loop found in no store, and so empty: where they looked.
    private var absent: [DatabaseName: LoopStore] = [:]
    /// Bytes of the names in both.
    private var knownBytes = 0
    private var absentBytes = 0
    /// Calls that wait until a store is found, in their order.
    private var waiting: [DatabaseName: [Waiting]] = [:]
    private var waitingCount = 0
    private var waitingBytes = 0

    private struct Waiting {
        let creates: Bool
        /// Of the request that is kept.
        let byteCount: Int
        let continuation: Continuation
    }

    /// Databases whose stores a loop remembers, and bytes of their names. Beyond that it begins again. The same holds
    /// for those that are in no store.
    private static let knownMax = 10_000
    private static let knownBytesMax = 1 << 20
    /// Calls of one loop that may wait, and the bytes of their requests.
    private static let waitingMax = 10_000
    private static let waitingBytesMax = 64 << 20

    /// - Parameter places: knows the stores of databases; nil if there is one store.
    init(_ all: [LoopStore], _ places: (any DatabasePlaces)?, on loop: EventLoop) {
        precondition(!all.isEmpty && (places != nil || all.count == 1), "several stores need a table of databases")
        self.all = all
        self.places = places
        self.loop = loop
        let bound = LoopBound(WeakStores(self))
        places?.whenLearnt { databases in loop.execute { bound.value.stores?.learn(databases) } }
    }

    /// Observers outlive the loop's stores.
    private struct WeakStores {
        weak var stores: LoopStores?
        init(_ stores: LoopStores) { self.stores = stores }
    }

    var first: LoopStore { all[0] }
    /// The only store; nil if there are several.
    var only: LoopStore? { places == nil ? all[0] : nil }

    func named(_ name: String) -> LoopStore? {
        name.isEmpty ? first : all.first { $0.served.name.utf8.elementsEqual(name.utf8) }
    }

    /// The store of a database that is known here; the first one of a server with one store.
    func known(_ database: DatabaseName) -> LoopStore? {
        guard let places else { return first }
        return known[database] ?? places.known(database).map { all[$0] }
    }

    /// The store whose groups a server of a cluster asks for; the first one if none has them, and for a replica.
    func followed(_ request: FollowRequest) -> LoopStore {
        guard only == nil, let place = request.place else { return first }
        let wanted = SharedLogPlace(
            store: StoreIdentity(high: place.storeHigh, low: place.storeLow), sequence: place.sequence,
            hash: place.hash)
        let found = all.first {
            $0.served.store.configuration.engine.sharedLog?.durableGroups(after: wanted, bytesMax: 0) != nil
        }
        return found ?? first
    }

    // MARK: Finding

    /// The store that a request is about; nil if it must be found, by ``find(_:creates:byteCount:_:)``. A request with
    /// a malformed name is for the first store, which refuses it.
    func store(of method: FirestoreMessages.Method, in request: RawSpan) -> LoopStore? {
        guard let places else { return first }
        guard let name = database(of: method, in: request) else { return first }
        if let last, last.name == name, last.store.serves(name) { return last.store }
        if waiting[name] != nil { return nil }
        var store = known[name]
        if store == nil, let number = places.known(name) {
            store = all[number]
            remember(name, all[number])
        }
        // One that moves, or has moved while this server did not look.
        guard let store, store.serves(name) else { return nil }
        last = (name, store)
        return store
    }

    /// The database that a request is about; nil if it has no valid name of one.
    func database(of method: FirestoreMessages.Method, in request: RawSpan) -> DatabaseName? {
        if method == .createDatabase { return try? CreateDatabaseRequest(wire: request).databaseName }
        guard let range = method.nameRange(in: request) else { return nil }
        let name = request.extracting(range)
        guard let count = DatabaseName.prefixByteCount(of: name) else { return nil }
        let prefix = name.extracting(first: count)
        if let last, last.name.utf8.span.bytes.equalsBytes(prefix) { return last.name }
        return try? DatabaseName(prefix)
    }

    /// Finds the store of a database, or any that is open if no store has it and none shall.
    ///
    /// - Parameters:
    ///   - creates: a database that no store has is put in one.
    ///   - byteCount: what the call holds while it waits.
    /// - Throws: `RESOURCE_EXHAUSTED` if too many calls wait.
    func find(
        _ database: DatabaseName, creates: Bool, byteCount: Int, _ continuation: @escaping Continuation
    ) throws(RequestError) {
        guard waitingCount < Self.waitingMax, waitingBytes + byteCount <= Self.waitingBytesMax else {
            throw RequestError(.resourceExhausted, "Too many calls wait for the table of databases.")
        }
        waitingCount += 1
        waitingBytes += byteCount
        let isFirst = waiting[database] == nil
        waiting[database, default: []].append(
            Waiting(creates: creates, byteCount: byteCount, continuation: continuation))
        if isFirst { ask(database) }
    }

    /// Asks for the database of the calls that wait, on behalf of the first of them.
    private func ask(_ database: DatabaseName) {
        let creates = waiting[database]?.first?.creates ?? false
        let bound = LoopBound(self)
        places?.find(database, creates: creates) { [loop] outcome in
            loop.execute { bound.value.found(database, outcome) }
        }
    }

    private func found(_ database: DatabaseName, _ outcome: Result<Int?, RequestError>) {
        guard let calls = waiting[database], let first = calls.first else { return }
        switch outcome {
        case .success(let number?):
            remember(database, all[number])
            end(calls.count, of: database, .success(all[number]))
        case .success(nil) where first.creates:
            end(calls.count, of: database, .failure(.noStore(of: database)))
        case .success(nil):
            // It may have come into being since.
            if let number = places?.known(database) { return found(database, .success(number)) }
            // Those that only read find the database empty, wherever they look.
            let store = all.first { !$0.isRetired && !$0.served.isCutOff } ?? self.first
            noteAbsent(database, at: store)
            end(calls.prefix { !$0.creates }.count, of: database, .success(store))
            if waiting[database] != nil { ask(database) }
        case .failure(let error): end(calls.count, of: database, .failure(error))
        }
    }

    /// Ends the wait of the first calls for a database.
    private func end(_ count: Int, of database: DatabaseName, _ outcome: Result<LoopStore, RequestError>) {
        guard let calls = waiting[database] else { return }
        let (ended, left) = (calls.prefix(count), Array(calls.dropFirst(count)))
        waiting[database] = left.isEmpty ? nil : left
        waitingCount -= ended.count
        waitingBytes -= ended.reduce(0) { $0 + $1.byteCount }
        for call in ended { call.continuation(outcome) }
    }

    private func remember(_ database: DatabaseName, _ store: LoopStore) {
        if known.count >= Self.knownMax || knownBytes >= Self.knownBytesMax {
            known.removeAll()
            knownBytes = 0
        }
        if known.updateValue(store, forKey: database) == nil { knownBytes += database.utf8.count }
    }

    /// Databases have come into being, or have moved. Listeners that found one of them empty end, and begin again at
    /// its store.
    private func learn(_ databases: [DatabaseName: Int]) {
        for (name, number) in databases where known[name] != nil { known[name] = all[number] }
        if let name = last?.name, databases[name] != nil { last = nil }
        let moved = databases.compactMap { name, number -> (DatabaseName, LoopStore)? in
            guard let store = absent.removeValue(forKey: name) else { return nil }
            absentBytes -= name.utf8.count
            return store === all[number] ? nil : (name, store)
        }
        if !moved.isEmpty { endListeners(of: Dictionary(uniqueKeysWithValues: moved)) }
    }

    /// - Parameter databases: and the stores where the listeners are.
    private func endListeners(of databases: [DatabaseName: LoopStore]) {
        for store in all {
            store.firestore.longLivedStreams.stopServing { listener in
                (try? DatabaseName(listener.database)).map { databases[$0] === store } ?? false
            }
        }
    }

    /// Remembers that a database is in no store, and where calls look for it.
    private func noteAbsent(_ database: DatabaseName, at store: LoopStore) {
        if let before = absent[database], before !== store { endListeners(of: [database: before]) }
        if absent.count >= Self.knownMax || absentBytes >= Self.knownBytesMax {
            endListeners(of: absent)
            absent = [:]
            absentBytes = 0
        }
        if absent.updateValue(store, forKey: database) == nil { absentBytes += database.utf8.count }
    }

    // MARK: All stores

    func loopWillWait() {
        for store in all { store.releaseSnapshots() }
    }

    func checkAccess() {
        for store in all { store.firestore.longLivedStreams.checkAccess() }
    }

    func stopServing() {
        for store in all { store.firestore.longLivedStreams.stopServing() }
    }

    var listeners: [ListenerDescription] { all.flatMap(\.firestore.longLivedStreams.listeners) }

    /// What the queries of the loop have read in the last hour.
    var queryCosts: [QueryCost] { all.flatMap(\.firestore.queryCosts) }

    func closeLinks() {
        for store in all { store.services.link?.close() }
    }
}

extension RequestError {
    /// It cannot be found out now which store has a database.
    static func noStore(of database: DatabaseName) -> RequestError {
        RequestError(.unavailable, "The store of the database \(database) is not known yet. Please try again.")
    }
}

extension CreateDatabaseRequest {
    /// The database that shall be created; nil if its name is none.
    fileprivate var databaseName: DatabaseName? { try? DatabaseName("\(parent)/databases/\(databaseID)") }
}
