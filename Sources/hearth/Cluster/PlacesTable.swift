// The table of databases, as one thread reads and changes it.
//
// The thread serves all stores, so it connects to the home database alone. What is to be done in another database is a
// task (StoreTasks), and who leads a store there is known from the member of this server.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import PostgreSQLLog
import Server
import Storage

/// Belongs to the thread of ``ClusterPlaces``.
final class PlacesTable {
    private let places: ClusterPlaces
    private let served: [ServedStore]
    /// With the home database.
    private let session: KeptSession
    /// What the rows had in common when they were read last.
    private var mark: [UInt64] = []
    /// Whether a database was moving when the table was looked at last.
    private var isMoving = false
    /// Stores that have only databases with a row, as far as this server has seen to it.
    private var sharing: Set<Int> = []
    /// Whether that is so of all stores: then a database without a row is in none.
    private var areAllSharing = false
    /// When the table is looked at again, in milliseconds.
    private var lookAt: UInt64 = 0
    /// What was logged last about the database that has the table.
    private var lastFailure = ""
    /// What was logged about databases in two stores, by the number of the store that is looked at.
    private var conflicts: [Int: String] = [:]
    private var spread = LeaseSpread()
    /// When the leaders are looked at again, in milliseconds.
    private var spreadAt: UInt64 = 0

    private static let intervalMilliseconds: UInt64 = 1_000
    /// While a database moves.
    private static let movingMilliseconds: UInt64 = 200
    private static let waitedForMilliseconds: UInt64 = 100
    init(_ places: ClusterPlaces, _ served: [ServedStore], address: String) {
        self.places = places
        self.served = served
        var isMade = false
        var moved: Set<String> = []
        session = KeptSession(address: address) { session in
            try Self.check(places, session, &moved)
            if !isMade { try session.run(StoreTables.creationOfDatabases) }
            isMade = true
        }
    }

    /// When to look again, in milliseconds.
    func nextLook(isWaitedFor: Bool) -> UInt64 {
        guard isWaitedFor else { return lookAt }
        return min(lookAt, SystemClock.monotonicMilliseconds() + Self.waitedForMilliseconds)
    }

    /// The table is looked at in the next turn.
    func lookSoon() { lookAt = 0 }

    func close() { session.close() }

    /// The home database cannot be used. What the stores have by their own logs is served all the same.
    private func failed(_ error: any Error) {
        learnOwned()
        lookAt = SystemClock.monotonicMilliseconds() + Self.intervalMilliseconds
        let message = ErrorText.describe(error)
        if message != lastFailure { places.log(.warning, "databases_unreachable", ["message": message]) }
        lastFailure = message
    }

    /// Looks at the table if that is due, and answers questions.
    /// - Returns: those that have to wait for stores that do not share yet.
    func answer(_ questions: [ClusterPlaces.Question]) -> [ClusterPlaces.Question] {
        // The home database may take its time to refuse a connection.
        let isAway = !session.isOpen && !lastFailure.isEmpty
        var left = (isAway ? questions.filter { !answerFromLog($0) } : questions)[...]
        var postponed: [ClusterPlaces.Question] = []
        do {
            try session.use { session in
                try lookIfDue(session, isWaitedFor: !questions.isEmpty)
                while let question = left.first {
                    let outcome = try place(of: question, session)
                    left.removeFirst()
                    if let outcome { question.completion(outcome) } else { postponed.append(question) }
                }
            }
            lastFailure = ""
        } catch {
            failed(error)
            for question in left where !answerFromLog(question) {
                question.completion(.failure(.tableUnreachable))
            }
        }
        return postponed
    }

    /// Compares the stores of the home database with those that this server serves: it may have begun without the home
    /// database, or that one was replaced.
    /// - Parameter moved: stores of which it was logged that their database has another address now.
    private static func check(
        _ places: ClusterPlaces, _ session: PostgreSQLSession, _ moved: inout Set<String>
    ) throws {
        guard try session.run(StoreTables.exists).first?.number(0) == 1 else { throw NoStores() }
        for row in try session.run(StoreTables.identities) {
            let store = places.stores.first { $0.tables.name == row.text(0) }
            let found = StoreIdentity(high: row.number(1) ?? 0, low: row.number(2) ?? 0)
            if let identity = store?.identity, found != identity { throw OtherStore(name: row.text(0)) }
        }
        let found = try StorePlace.all(session)
        for store in places.stores {
            let place = found.first { $0.store == store.tables.name }
            guard place?.address != store.place?.address, moved.insert(store.tables.name).inserted else { continue }
            let message = "its database has another address in the home database: start this server again"
            places.log(.warning, "cluster_store_moved", ["store": store.tables.name, "message": message])
        }
    }

    // MARK: Without the home database

    /// The store that has a database by its own log, as far as this server has applied that; nil if none has. A store
    /// that has it since a later move comes first.
    private func owner(of database: DatabaseName) -> Int? {
        let owners = served.indices.compactMap { index -> (index: Int, generation: UInt64)? in
            guard served[index].isOpen, places.stores[index].isSharing else { return nil }
            let tenure = served[index].store.tenure(of: database)
            return tenure.state == .owned ? (index, tenure.generation) : nil
        }
        return owners.max { $0.generation < $1.generation }?.index
    }

    /// Answers a question about a database that a store has by its own log.
    /// - Returns: false if none has.
    private func answerFromLog(_ question: ClusterPlaces.Question) -> Bool {
        guard let owner = owner(of: question.database) else { return false }
        places.learn([question.database: owner])
        question.completion(.success(owner))
        return true
    }

    /// Learns the databases that the stores have by their own logs.
    private func learnOwned() {
        let names = served.indices.filter { served[$0].isOpen && places.stores[$0].isSharing }
            .flatMap { served[$0].store.databaseDescriptions.map(\.name) }
        var owners: [DatabaseName: Int] = [:]
        for name in names where places.known(name) == nil { owners[name] = owner(of: name) }
        if !owners.isEmpty { places.learn(owners) }
    }

    // MARK: Looking

    /// Learns what other servers have added.
    private func lookIfDue(_ session: PostgreSQLSession, isWaitedFor: Bool) throws {
        let now = SystemClock.monotonicMilliseconds()
        guard now >= lookAt || isWaitedFor && !areAllSharing else { return }
        lookAt = now + (isMoving ? Self.movingMilliseconds : Self.intervalMilliseconds)
        for index in served.indices where !sharing.contains(index) { try share(index, session) }
        places.noteAnswer()
        if !isWaitedFor, now >= spreadAt {
            spreadAt = now + Self.intervalMilliseconds
            try handOver(session)
        }
        let mark = try session.run(StoreTables.databasesMark).first.map { row in (0..<3).map { row.number($0) ?? 0 } }
        guard let mark, mark != self.mark else { return }
        isMoving = mark[2] > 0
        let rows = try session.run(StoreTables.databases)
        var found: [DatabaseName: Int] = [:]
        for row in rows {
            guard let name = try? DatabaseName(row.text(0)), let index = number(of: row.text(1)) else { continue }
            found[name] = index
        }
        self.mark = mark
        places.learn(found)
    }

    private func number(of store: String) -> Int? { places.stores.firstIndex { $0.tables.name == store } }

    /// Enters the databases of a store that this server leads, and notes that it takes no others.
    private func share(_ index: Int, _ session: PostgreSQLSession) throws {
        let store = places.stores[index]
        guard served[index].isOpen, let epoch = store.leadingEpoch else { return }
        for database in served[index].store.databaseDescriptions {
            let name = "\(database.name)"
            try session.run(store.tables.entering(name))
            let other = try session.run(StoreTables.store(of: name)).first?.text(0) ?? ""
            guard other == store.tables.name else {
                let message = Self.conflict(
                    of: name, store.tables.name, other, isSharing: store.isSharing)
                if message != conflicts[index] { places.log(.error, "database_twice", ["message": message]) }
                return conflicts[index] = message
            }
        }
        conflicts[index] = nil
        guard store.place != nil else {
            if try !session.run(store.tables.sharing(in: epoch)).isEmpty { sharing.insert(index) }
            return
        }
        // Its own row first, in its database; then the row here.
        store.tasks.share(in: epoch)
        guard store.tasks.shares else { return }
        try session.run(store.tables.notingThatItShares)
        sharing.insert(index)
    }

    /// - Parameters:
    ///   - store: which has the database by its log.
    ///   - other: which has it by the table.
    ///   - isSharing: whether the store has had only databases of the table before: it takes part in creating others.
    static func conflict(of database: String, _ store: String, _ other: String, isSharing: Bool) -> String {
        let consequence =
            isSharing
            ? "calls go to the store that has it by the latest move: give hearth move for it again"
            : "no databases are created until it is deleted in one of them"
        return "the database \(database) is in the stores \(store) and \(other); \(consequence)"
    }

    /// Hands a store over to another server if this one leads more than its share.
    private func handOver(_ session: PostgreSQLSession) throws {
        guard let own = places.stores.first?.tables.advertised, let servers = try servers(session) else { return }
        let leaders = places.stores.compactMap { store in store.leader.map { (store.tables.name, $0) } }
        let move = spread.look(own, leaders: Dictionary(leaders) { first, _ in first }, servers: servers)
        guard let move, let index = number(of: move.store), let epoch = places.stores[index].leadingEpoch else {
            return
        }
        let store = places.stores[index]
        if store.place != nil { return store.tasks.handOver(in: epoch, to: move.server) }
        if try session.run(store.tables.handingOver(in: epoch, to: move.server)).isEmpty { return }
        places.log(.info, "cluster_store_handed_over", ["store": move.store, "server": move.server])
    }

    /// The addresses of the servers that can lead all stores; nil while that is not known.
    private func servers(_ session: PostgreSQLSession) throws -> Set<String>? {
        let names = places.stores.filter { $0.place == nil }.map(\.tables.name)
        var found: Set<String>?
        if !names.isEmpty { found = Set(try session.run(StoreTables.servers(of: names)).map { $0.text(0) }) }
        for store in places.stores where store.place != nil {
            guard let servers = store.tasks.servers else { return nil }
            found = found?.intersection(servers) ?? servers
        }
        return found
    }

    // MARK: Questions

    /// - Returns: nil if there is no answer yet.
    private func place(
        of question: ClusterPlaces.Question, _ session: PostgreSQLSession
    ) throws -> Result<Int?, RequestError>? {
        if let known = places.known(question.database), refusal(of: question.database, at: known) == nil {
            return .success(known)
        }
        let (name, names) = ("\(question.database)", places.stores.map(\.tables.name))
        var row = try session.run(StoreTables.store(of: name)).first
        if row == nil, question.creates {
            // A store that is away could not take it.
            let reached = places.stores.filter(\.isReached).map(\.tables.name)
            let candidates = reached.isEmpty ? names : reached
            try session.run(StoreTables.adding(name, to: candidates, of: names, places.limits))
            row = try session.run(StoreTables.store(of: name)).first
        }
        if let row {
            guard let index = number(of: row.text(0)) else { return .failure(.storeIsNotServed(row.text(0))) }
            guard let refusal = refusal(of: question.database, at: index) else {
                places.learn([question.database: index])
                return .success(index)
            }
            // The row may be older than the log of its store: it follows the end of a move, and the home database may
            // have been restored.
            if let owner = owner(of: question.database), self.refusal(of: question.database, at: owner) == nil {
                places.learn([question.database: owner])
                return .success(owner)
            }
            places.learn([question.database: index])
            // It is on its way to its new store, or this server has not applied that yet.
            return SystemClock.monotonicMilliseconds() < question.deadline ? nil : .failure(refusal)
        }
        if !areAllSharing {
            areAllSharing = try session.run(StoreTables.sharingCount(of: names)).first?.number(0) == UInt64(names.count)
        }
        if areAllSharing, !question.creates { return .success(nil) }
        if areAllSharing { return .failure(.tooManyDatabases(places.limits)) }
        return SystemClock.monotonicMilliseconds() < question.deadline ? nil : .failure(.storesDoNotShare)
    }

    /// Why a store does not serve a database that moves; nil if it does.
    private func refusal(of database: DatabaseName, at index: Int) -> RequestError? {
        served[index].store.moveRefusal(of: database)
    }

    // MARK: Moves

    /// Begins moves, gives them up, or says how far they are.
    func carryOut(_ orders: [ClusterPlaces.MoveOrder]) {
        for order in orders {
            do {
                let row = try session.use { try carryOut(order, $0) }
                order.completion(.success(MovedDatabase(row)))
            } catch let error as RequestError {
                order.completion(.failure(error))
            } catch {
                failed(error)
                order.completion(.failure(.tableUnreachable))
            }
        }
    }

    /// - Returns: the row after it.
    private func carryOut(_ order: ClusterPlaces.MoveOrder, _ session: PostgreSQLSession) throws -> DatabaseMoveRow {
        let (name, store) = ("\(order.database)", order.request.store)
        func found() throws -> DatabaseMoveRow {
            guard let row = StoreTables.moveRows(try session.run(StoreTables.row(of: name))).first else {
                throw RequestError(.notFound, "No store has the database \(name).")
            }
            return row
        }
        let row = try found()
        if store.isEmpty || row.row.movingTo == store || row.row.movingTo == nil && row.row.store == store {
            return row
        }
        guard number(of: store) != nil else {
            let names = places.stores.map(\.tables.name).joined(separator: ", ")
            throw RequestError(.invalidArgument, "There is no store \(store). The stores of this server are: \(names).")
        }
        if row.row.store == store { return try giveUp(row, session) ? try found() : try refuse(row) }
        guard row.row.movingTo == nil else { return try refuse(row) }
        let generation = served.filter(\.isOpen).map { $0.store.tenure(of: order.database).generation }.max() ?? 0
        guard try session.run(StoreTables.moving(name, to: store, after: generation)).first?.number(0) == 1 else {
            throw RequestError.storesDoNotShare
        }
        places.log(.info, "database_move_begun", ["database": name, "from": row.row.store, "to": store])
        return try found()
    }

    private func giveUp(_ row: DatabaseMoveRow, _ session: PostgreSQLSession) throws -> Bool {
        let statement = StoreTables.givingUp(row.name, generation: row.row.generation, note: "it was given up")
        if try session.run(statement).isEmpty { return false }
        places.log(.info, "database_move_given_up", ["database": row.name, "to": row.row.movingTo ?? ""])
        return true
    }

    private func refuse(_ row: DatabaseMoveRow) throws -> DatabaseMoveRow {
        let target = row.row.movingTo ?? row.row.store
        throw RequestError(
            .failedPrecondition, "The database \(row.name) moves to the store \(target) already, or is there by now.")
    }
}

/// The home database has a store that is not the one of this server.
private struct OtherStore: Error, CustomStringConvertible {
    let name: String

    var description: String {
        "the home database has another store \(name) than this server serves: stop it, and name the home database of "
            + "its stores with --cluster"
    }
}

extension MovedDatabase {
    fileprivate init(_ row: DatabaseMoveRow) {
        self.init(store: row.row.store)
        movingTo = row.row.movingTo ?? ""
        generation = row.row.generation
        isReleasing = row.row.isReleasing
        documents = row.documents
        note = row.note
    }
}

extension RequestError {
    fileprivate static let tableUnreachable = RequestError(
        .unavailable,
        "The home database of the cluster, which has the table of databases, cannot be reached. Please try again.")

    fileprivate static let storesDoNotShare = RequestError(
        .unavailable, "A store of the cluster has no leader yet that has entered its databases. Please try again.")

    fileprivate static func storeIsNotServed(_ name: String) -> RequestError {
        RequestError(.unavailable, "The database is in the store \(name), which this server does not serve.")
    }

    fileprivate static func tooManyDatabases(_ limits: DatabaseLimits) -> RequestError {
        RequestError(
            .resourceExhausted,
            """
            The cluster has reached its limit of \(limits.count) databases (--max-databases), or of \(limits.bytes) \
            bytes of memory for what is known of them (--max-database-bytes).
            """)
    }
}
