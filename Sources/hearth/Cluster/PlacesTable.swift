// The table of databases, as one thread reads and changes it.

import Basics
import DocumentModel
import DocumentStore
import PostgreSQLLog
import Server

/// Belongs to the thread of ``ClusterPlaces``.
final class PlacesTable {
    private let places: ClusterPlaces
    private let served: [ServedStore]
    private let address: String
    private var session: PostgreSQLSession?
    private var isMade = false
    private var rowCount: UInt64 = 0
    /// Stores that have only databases with a row, as far as this server has seen to it.
    private var sharing: Set<Int> = []
    /// Whether that is so of all stores: then a database without a row is in none.
    private var areAllSharing = false
    /// When the table is looked at again, in milliseconds.
    private var lookAt: UInt64 = 0
    /// What was logged last about the database that has the table, and about a database in two stores.
    private var lastFailure = ""
    private var lastConflict = ""
    private var spread = LeaseSpread()

    private static let intervalMilliseconds: UInt64 = 1_000
    private static let waitedForMilliseconds: UInt64 = 100
    private static let connectMilliseconds: UInt64 = 5_000

    init(_ places: ClusterPlaces, _ served: [ServedStore], address: String) {
        self.places = places
        self.served = served
        self.address = address
    }

    /// When to look again, in milliseconds.
    func nextLook(isWaitedFor: Bool) -> UInt64 {
        guard isWaitedFor else { return lookAt }
        return min(lookAt, SystemClock.monotonicMilliseconds() + Self.waitedForMilliseconds)
    }

    func close() {
        session?.close()
        session = nil
    }

    /// Looks at the table if that is due, and answers questions.
    /// - Returns: those that have to wait for stores that do not share yet.
    func answer(_ questions: [ClusterPlaces.Question]) -> [ClusterPlaces.Question] {
        var left = questions[...]
        var postponed: [ClusterPlaces.Question] = []
        do {
            let session = try connected()
            try lookIfDue(session, isWaitedFor: !questions.isEmpty)
            while let question = left.first {
                let outcome = try place(of: question, session)
                left.removeFirst()
                if let outcome { question.completion(outcome) } else { postponed.append(question) }
            }
            lastFailure = ""
        } catch {
            close()
            lookAt = SystemClock.monotonicMilliseconds() + Self.intervalMilliseconds
            let message = ErrorText.describe(error)
            if message != lastFailure { places.log(.warning, "databases_unreachable", ["message": message]) }
            lastFailure = message
            for question in left { question.completion(.failure(.tableUnreachable)) }
        }
        return postponed
    }

    private func connected() throws -> PostgreSQLSession {
        if let session { return session }
        let session = try PostgreSQLSession(address: address, withinMilliseconds: Self.connectMilliseconds)
        if !isMade { try session.run(StoreTables.creationOfDatabases) }
        isMade = true
        self.session = session
        return session
    }

    // MARK: Looking

    /// Learns what other servers have added.
    private func lookIfDue(_ session: PostgreSQLSession, isWaitedFor: Bool) throws {
        let now = SystemClock.monotonicMilliseconds()
        guard now >= lookAt || isWaitedFor && !areAllSharing else { return }
        lookAt = now + Self.intervalMilliseconds
        for index in served.indices where !sharing.contains(index) { try share(index, session) }
        if !isWaitedFor { try handOver(session) }
        let count = try session.run(StoreTables.databaseCount).first?.number(0) ?? 0
        if count == rowCount { return }
        let rows = try session.run(StoreTables.databases)
        var found: [DatabaseName: Int] = [:]
        for row in rows {
            guard let name = try? DatabaseName(row.text(0)), let index = number(of: row.text(1)) else { continue }
            found[name] = index
        }
        rowCount = UInt64(rows.count)
        places.learn(found)
    }

    private func number(of store: String) -> Int? { places.stores.firstIndex { $0.tables.name == store } }

    /// Enters the databases of a store that this server leads, and notes that it takes no others.
    private func share(_ index: Int, _ session: PostgreSQLSession) throws {
        let store = places.stores[index]
        guard served[index].isOpen, let epoch = store.leadingEpoch() else { return }
        for database in served[index].store.databaseDescriptions {
            let name = "\(database.name)"
            try session.run(store.tables.entering(name))
            let other = try session.run(StoreTables.store(of: name)).first?.text(0) ?? ""
            guard other == store.tables.name else {
                let message = """
                    the database \(name) is in the stores \(store.tables.name) and \(other); no databases are created \
                    until it is deleted in one of them
                    """
                if message != lastConflict { places.log(.error, "database_twice", ["message": message]) }
                return lastConflict = message
            }
        }
        if try !session.run(store.tables.sharing(in: epoch)).isEmpty { sharing.insert(index) }
    }

    /// Hands a store over to another server if this one leads more than its share.
    private func handOver(_ session: PostgreSQLSession) throws {
        let names = places.stores.map(\.tables.name)
        guard let own = places.stores.first?.tables.advertised else { return }
        let leaders = try session.run(StoreTables.leaders(of: names)).map { ($0.text(0), $0.text(1)) }
        let servers = try session.run(StoreTables.servers(of: names)).map { $0.text(0) }
        let move = spread.look(
            own, leaders: Dictionary(leaders) { first, _ in first }, servers: Set(servers))
        guard let move, let index = number(of: move.store), let epoch = places.stores[index].leadingEpoch() else {
            return
        }
        let tables = places.stores[index].tables
        if try session.run(tables.handingOver(in: epoch, to: move.server)).isEmpty { return }
        places.log(.info, "cluster_store_handed_over", ["store": move.store, "server": move.server])
    }

    // MARK: Questions

    /// - Returns: nil if there is no answer yet.
    private func place(
        of question: ClusterPlaces.Question, _ session: PostgreSQLSession
    ) throws -> Result<Int?, RequestError>? {
        if let known = places.known(question.database) { return .success(known) }
        let (name, names) = ("\(question.database)", places.stores.map(\.tables.name))
        var row = try session.run(StoreTables.store(of: name)).first
        if row == nil, question.creates {
            try session.run(StoreTables.adding(name, to: names, databasesMax: UInt64(places.databasesMax)))
            row = try session.run(StoreTables.store(of: name)).first
        }
        if let row {
            guard let index = number(of: row.text(0)) else { return .failure(.storeIsNotServed(row.text(0))) }
            places.learn([question.database: index])
            return .success(index)
        }
        if !areAllSharing {
            areAllSharing = try session.run(StoreTables.sharingCount(of: names)).first?.number(0) == UInt64(names.count)
        }
        if areAllSharing, !question.creates { return .success(nil) }
        if areAllSharing { return .failure(.tooManyDatabases(places.databasesMax)) }
        return SystemClock.monotonicMilliseconds() < question.deadline ? nil : .failure(.storesDoNotShare)
    }
}

extension RequestError {
    fileprivate static let tableUnreachable = RequestError(
        .unavailable, "The table of the cluster's databases cannot be reached. Please try again.")

    fileprivate static let storesDoNotShare = RequestError(
        .unavailable, "A store of the cluster has no leader yet that has entered its databases. Please try again.")

    fileprivate static func storeIsNotServed(_ name: String) -> RequestError {
        RequestError(.unavailable, "The database is in the store \(name), which this server does not serve.")
    }

    fileprivate static func tooManyDatabases(_ maximum: Int) -> RequestError {
        RequestError(.resourceExhausted, "The cluster has reached its limit of \(maximum) databases.")
    }
}
