// Which store of a cluster has a database: the table of the home database, and what this server knows of it.
//
//     loop ── find ──► questions ──► thread "databases" ──► hearth.databases
//                                        │
//     loops ◄── learnt ──────────────────┘   once a second: what other servers have added
//
// Rows never change, so what was learnt stays true. The thread also enters the databases of the stores that this
// server leads, which is needed once for each store (StoreTables+Databases).

import Basics
import DocumentModel
import DocumentStore
import FirestoreService
import PostgreSQLLog
import Server
import Storage

/// Thread-safe.
final class ClusterPlaces: DatabasePlaces {
    typealias Completion = @Sendable (Result<Int?, RequestError>) -> Void

    /// A store that this server serves.
    struct Store: Sendable {
        let tables: StoreTables
        /// The epoch in which this server leads; nil if it does not.
        let leadingEpoch: @Sendable () -> UInt64?
    }

    struct Question: Sendable {
        let database: DatabaseName
        let creates: Bool
        /// Until when it waits for stores that do not share yet, in milliseconds.
        let deadline: UInt64
        let completion: Completion
    }

    private struct State {
        var known: [DatabaseName: Int] = [:]
        var questions: [Question] = []
        var observers: [@Sendable ([DatabaseName: Int]) -> Void] = []
        var isStopping = false
        var thread: SystemThread?
    }

    private struct Turn {
        var questions: [Question] = []
        var isStopping = false
    }

    private let address: String
    let stores: [Store]
    let databasesMax: Int
    let log: Log
    private let state = Monitor(State())

    private static let patienceMilliseconds: UInt64 = 10_000

    /// - Parameters:
    ///   - address: of the database with the table.
    ///   - databasesMax: further databases are refused.
    init(address: String, _ stores: [Store], databasesMax: Int, log: Log) {
        self.address = address
        self.stores = stores
        self.databasesMax = databasesMax
        self.log = log
    }

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
                return table.close()
            }
            postponed = table.answer(questions)
        }
    }

    private func nextTurn(until milliseconds: UInt64) -> Turn {
        state.wait(untilNanoseconds: milliseconds * 1_000_000) { state -> Turn? in
            guard state.isStopping || !state.questions.isEmpty else { return nil }
            defer { state.questions = [] }
            return Turn(questions: state.questions, isStopping: state.isStopping)
        } ?? Turn()
    }

    /// Databases were found in the table.
    func learn(_ databases: [DatabaseName: Int]) {
        let (news, observers) = state.update { state in
            let news = databases.filter { state.known[$0.key] == nil }
            state.known.merge(news) { $1 }
            return (news, state.observers)
        }
        if news.isEmpty { return }
        for observer in observers { observer(news) }
    }
}
