// Which store of a cluster has a database: the table of the home database, and what this server knows of it.
//
//     loop ── find ──► questions ──► thread "databases" ──► hearth.databases
//                                        │
//     loops ◄── learnt ──────────────────┘   once a second: what other servers have added or moved
//
// While the home database is away, a database that a store has by its own log is found there.
//
// A server that has not learnt yet that a database has moved does no harm: the store where it was refuses calls for it.
// Such calls wait here until the table names a store that serves the database. The thread also enters the databases of
// the stores that this server leads, which is needed once for each store (StoreTables+Databases).

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import PostgreSQLLog
import Server
import Storage
import Synchronization

/// Thread-safe.
final class ClusterPlaces: DatabasePlaces {
    typealias Completion = @Sendable (Result<Int?, RequestError>) -> Void

    struct Question: Sendable {
        let database: DatabaseName
        let creates: Bool
        /// Until when it waits for stores that do not share yet, and for the end of a move, in milliseconds.
        let deadline: UInt64
        let completion: Completion
    }

    /// A move that an operator begins, gives up or asks about.
    struct MoveOrder: Sendable {
        let request: MoveDatabaseRequest
        let database: DatabaseName
        let completion: @Sendable (Result<MovedDatabase, RequestError>) -> Void
    }

    private struct State {
        var known: [DatabaseName: Int] = [:]
        var questions: [Question] = []
        var orders: [MoveOrder] = []
        /// Whether the table has changed, as far as this server knows.
        var mustLook = false
        var observers: [@Sendable ([DatabaseName: Int]) -> Void] = []
        var isStopping = false
        var thread: SystemThread?
    }

    private struct Turn {
        var questions: [Question] = []
        var orders: [MoveOrder] = []
        var mustLook = false
        var isStopping = false
    }

    private let address: String
    /// Those that this server serves.
    let stores: [Cluster]
    let limits: DatabaseLimits
    let log: Log
    private let state = Monitor(State())
    /// When the home database answered last, in milliseconds.
    private let answeredAt = Atomic<UInt64>(SystemClock.monotonicMilliseconds())

    private static let patienceMilliseconds: UInt64 = 10_000

    /// - Parameters:
    ///   - address: of the database with the table.
    ///   - limits: further databases are refused.
    init(address: String, _ stores: [Cluster], _ limits: DatabaseLimits, log: Log) {
        self.address = address
        self.stores = stores
        self.limits = limits
        self.log = log
    }

    /// Milliseconds since the home database answered last.
    var silenceMilliseconds: UInt64 {
        let (now, answered) = (SystemClock.monotonicMilliseconds(), answeredAt.load(ordering: .relaxed))
        return now > answered ? now - answered : 0
    }

    func noteAnswer() { answeredAt.store(SystemClock.monotonicMilliseconds(), ordering: .relaxed) }

    // MARK: The loops' side

    func known(_ database: DatabaseName) -> Int? { state.withLock { $0.known[database] } }

    func find(_ database: DatabaseName, creates: Bool, completion: @escaping Completion) {
        let question = Question(
            database: database, creates: creates,
            deadline: SystemClock.monotonicMilliseconds() + Self.patienceMilliseconds, completion: completion)
        let isTaken = state.update { state in
            if !state.isStopping { state.questions.append(question) }
            return !state.isStopping
        }
        if !isTaken { completion(.failure(.shuttingDown)) }
    }

    func whenLearnt(_ observer: @escaping @Sendable ([DatabaseName: Int]) -> Void) {
        state.update { $0.observers.append(observer) }
    }

    func move(
        _ request: MoveDatabaseRequest, of database: DatabaseName,
        completion: @escaping @Sendable (Result<MovedDatabase, RequestError>) -> Void
    ) {
        let order = MoveOrder(request: request, database: database, completion: completion)
        let isTaken = state.update { state in
            if !state.isStopping { state.orders.append(order) }
            return !state.isStopping
        }
        if !isTaken { completion(.failure(.shuttingDown)) }
    }

    /// A row was changed by this server: the thread looks at the table at once.
    func look() { state.update { $0.mustLook = true } }

    // MARK: The thread

    /// Begins to answer questions.
    /// - Parameter served: the stores, in their order.
    func start(_ served: [ServedStore]) throws {
        let thread = try SystemThread(name: "databases") { [self] in
            run(PlacesTable(self, served, address: address))
        }
        state.update { $0.thread = thread }
    }

    /// Ends the thread. Questions fail.
    func stop() {
        let thread = state.update { state in
            state.isStopping = true
            return state.thread.take()
        }
        thread?.join()
    }

    private func run(_ table: PlacesTable) {
        var postponed: [Question] = []
        while true {
            let turn = nextTurn(until: table.nextLook(isWaitedFor: !postponed.isEmpty))
            let questions = postponed + turn.questions
            if turn.isStopping {
                for question in questions { question.completion(.failure(.shuttingDown)) }
                for order in turn.orders { order.completion(.failure(.shuttingDown)) }
                return table.close()
            }
            if turn.mustLook || !turn.orders.isEmpty { table.lookSoon() }
            table.carryOut(turn.orders)
            postponed = table.answer(questions)
        }
    }

    private func nextTurn(until milliseconds: UInt64) -> Turn {
        state.wait(untilNanoseconds: milliseconds * 1_000_000) { state -> Turn? in
            let hasWork = !state.questions.isEmpty || !state.orders.isEmpty || state.mustLook
            guard state.isStopping || hasWork else { return nil }
            defer { (state.questions, state.orders, state.mustLook) = ([], [], false) }
            return Turn(
                questions: state.questions, orders: state.orders, mustLook: state.mustLook,
                isStopping: state.isStopping)
        } ?? Turn()
    }

    /// Databases were found in the table, or have another store than before.
    func learn(_ databases: [DatabaseName: Int]) {
        let (news, observers) = state.update { state in
            let news = databases.filter { state.known[$0.key] != $0.value }
            state.known.merge(news) { $1 }
            return (news, state.observers)
        }
        if news.isEmpty { return }
        for observer in observers { observer(news) }
    }
}

extension DatabaseLimits {
    /// Those of a server: the stores share them.
    init(_ store: StoreConfiguration) {
        self.init(
            count: UInt64(store.databasesMax), bytes: UInt64(store.databaseBytesMax),
            bytesEach: UInt64(StoreConfiguration.databaseBytes))
    }
}
