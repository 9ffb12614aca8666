// Clients of a cluster that make transactions of lists, each call at another server.

import Basics
import DocumentModel
import FirestoreMessages
import HearthClient
import Synchronization
import TestSupport

/// A list is the field `v` of a document.
final class ListAppendClients: Sendable {
    private struct State {
        var history = ListAppendHistory()
        var nextElement = 1
        var appendsLeft: [Int: Int] = [:]
        var lists: [Int]
    }

    private let servers: [HearthClient]
    private let database: DatabaseName
    private let state: Mutex<State>
    private let isStopping = Atomic(false)
    private let seed: UInt64

    /// Lists in use at a time, and appends to a list before another one takes its place.
    private static let listCount = 6
    private static let appendsMax = 60

    init(_ nodes: [ClusterNode], seed: UInt64) throws {
        servers = try nodes.map { node in
            var configuration = HearthClient.Configuration(host: node.host, port: UInt16(node.port))
            configuration.outageMax = .milliseconds(200)
            configuration.callTimeout = .seconds(20)
            return try HearthClient(configuration)
        }
        database = try DatabaseName(project: "hearth")
        state = Mutex(State(lists: Array(0..<Self.listCount)))
        self.seed = seed
    }

    /// Transactions that have ended so far.
    var count: Int { state.withLock { $0.history.transactions.count } }

    /// Those that were committed.
    var committedCount: Int {
        state.withLock { state in state.history.transactions.count { $0.outcome == .committed } }
    }

    func stop() { isStopping.store(true, ordering: .relaxed) }

    /// Runs so many clients until they are stopped, and closes their connections.
    func run(clients: Int) async {
        await withTaskGroup(of: Void.self) { group in
            for process in 0..<clients { group.addTask { await self.run(process: process) } }
        }
    }

    func close() async { for server in servers { await server.close() } }

    private func run(process: Int) async {
        var random = SeededGenerator(seed: seed &+ UInt64(process))
        while !isStopping.load(ordering: .relaxed) {
            var run = ListAppendRun(process: process, servers: servers, database: database, random: random)
            let kind = random.below(10)
            switch kind {
            case 0..<5: await run.readAndAppend(plan(&random, reads: 1 + random.below(2), appends: 1 + random.below(2)))
            case 5: await run.append(plan(&random, reads: 0, appends: 1 + random.below(3)))
            case 6, 7: await run.readOne(plan(&random, reads: 1, appends: 0))
            case 8: await run.readInTransaction(plan(&random, reads: 3, appends: 0))
            default: await run.readTogether(plan(&random, reads: 4, appends: 0))
            }
            random = run.random
            let transaction = run.transaction
            state.withLock { $0.history.transactions.append(transaction) }
        }
    }

    /// Lists to read, and elements to append.
    private func plan(_ random: inout SeededGenerator, reads: Int, appends: Int) -> ListAppendHistory.Transaction {
        state.withLock { state in
            var plan = ListAppendHistory.Transaction(
                process: 0, invokedAt: 0, completedAt: 0, outcome: .unknown)
            var lists = state.lists.shuffled(using: &random)
            plan.reads = lists.prefix(reads).map { ListAppendHistory.Read(list: $0, elements: []) }
            // Often to a list that was read.
            if random.oneIn(2) { lists.shuffle(using: &random) }
            plan.appends = lists.prefix(appends).map { list in
                defer { state.nextElement += 1 }
                let left = state.appendsLeft[list, default: Self.appendsMax] - 1
                state.appendsLeft[list] = left
                if left == 0, let place = state.lists.firstIndex(of: list) {
                    state.lists[place] = (state.lists.max() ?? 0) + 1
                }
                return ListAppendHistory.Append(list: list, element: state.nextElement)
            }
            return plan
        }
    }

    /// What was done, with all lists as a server has them now. To be called when the clients have stopped.
    ///
    /// - Parameter server: the number of the server that is asked.
    func history(finalAt server: Int) async throws -> ListAppendHistory {
        var history = state.withLock { $0.history }
        let lists = state.withLock { ($0.lists.max() ?? 0) + 1 }
        for list in 0..<lists {
            let name = ListAppendRun.name(of: list, in: database)
            var found: StoredDocument?
            var failure: RequestError?
            // The client looks for a server that was started again after a backoff.
            try await eventually("the server reads \(name): \(String(describing: failure))") {
                do {
                    found = try await servers[server].getDocument(name)
                    return true
                } catch let error as RequestError where error.code == .unavailable {
                    failure = error
                    return false
                }
            }
            history.final[list] = try ListAppendRun.elements(of: found)
        }
        return history
    }
}

/// One transaction of a client.
struct ListAppendRun {
    private(set) var transaction: ListAppendHistory.Transaction
    private let servers: [HearthClient]
    private let database: DatabaseName
    var random: SeededGenerator

    init(process: Int, servers: [HearthClient], database: DatabaseName, random: SeededGenerator) {
        transaction = ListAppendHistory.Transaction(
            process: process, invokedAt: 0, completedAt: 0, outcome: .unknown)
        self.servers = servers
        self.database = database
        self.random = random
    }

    static func name(of list: Int, in database: DatabaseName) -> String { "\(database.documentsRoot)/lists/l\(list)" }

    static func elements(of document: StoredDocument?) throws -> [Int] {
        guard let document else { return [] }
        return try elements(in: document.fields)
    }

    private static func elements(in fields: [UInt8]) throws -> [Int] {
        guard let span = DocumentBytes.value(at: try FieldPath("v"), in: fields.byteSpan),
            case .array(let values) = try Value(wire: span)
        else { return [] }
        return values.compactMap { if case .integer(let number) = $0 { Int(number) } else { nil } }
    }

    // MARK: Kinds

    mutating func readAndAppend(_ plan: ListAppendHistory.Transaction) async {
        await perform(plan) { run in
            let id = try await run.server().beginTransaction(database: run.database)
            try await run.read(.transaction(id))
            return try await run.commit(in: id)
        }
    }

    mutating func append(_ plan: ListAppendHistory.Transaction) async {
        await perform(plan) { run in try await run.commit(in: []) }
    }

    mutating func readOne(_ plan: ListAppendHistory.Transaction) async {
        await perform(plan) { run in
            try await run.read(.latest)
            return .committed
        }
    }

    mutating func readInTransaction(_ plan: ListAppendHistory.Transaction) async {
        await perform(plan) { run in
            let id = try await run.server().beginTransaction(
                database: run.database, options: .readOnly(readTime: nil))
            try await run.read(.transaction(id))
            return .committed
        }
    }

    /// All lists of one state, in one call.
    mutating func readTogether(_ plan: ListAppendHistory.Transaction) async {
        await perform(plan) { run in
            let names = run.transaction.reads.map { Self.name(of: $0.list, in: run.database) }
            let found = try await run.server().batchGet(
                BatchGetDocumentsRequest(database: "\(run.database)", documents: names))
            for (name, content) in found.results {
                guard let index = names.firstIndex(of: name) else { continue }
                run.transaction.reads[index].elements = try Self.elements(of: content)
            }
            return .committed
        }
    }

    // MARK: Calls

    /// The next call's server, which is another one than that of the last call.
    private mutating func server() -> HearthClient {
        let others = servers.indices.filter { $0 != transaction.servers.last }
        let chosen = others.isEmpty ? 0 : random.pick(others)
        transaction.servers.append(chosen)
        return servers[chosen]
    }

    private mutating func perform(
        _ plan: ListAppendHistory.Transaction,
        _ body: (inout ListAppendRun) async throws -> ListAppendHistory.Outcome
    ) async {
        transaction.reads = plan.reads
        transaction.appends = plan.appends
        transaction.invokedAt = SystemClock.monotonicNanoseconds()
        do {
            let outcome = try await body(&self)
            transaction.outcome = outcome
        } catch {
            // Nothing was sent that changes anything.
            transaction.outcome = .aborted
        }
        transaction.completedAt = SystemClock.monotonicNanoseconds()
    }

    private mutating func read(_ consistency: ReadConsistency) async throws {
        for index in transaction.reads.indices {
            let name = Self.name(of: transaction.reads[index].list, in: database)
            let found = try await server().getDocument(name, consistency: consistency)
            transaction.reads[index].elements = try Self.elements(of: found)
        }
    }

    /// Commits the appends.
    private mutating func commit(in id: [UInt8]) async throws -> ListAppendHistory.Outcome {
        var writes = WriteList(database: database)
        for append in transaction.appends {
            let nothing: [UInt8] = []
            let transform = FieldTransform(
                path: try FieldPath("v"),
                operation: .appendMissingElements([EncodedValue(.integer(Int64(append.element)))]))
            try Self.name(of: append.list, in: database).withUTF8Span { (name) throws(RequestError) in
                try writes.update(
                    name, fields: nothing.byteSpan, mask: DocumentMask(paths: []), transforms: [transform])
            }
        }
        do throws(RequestError) {
            _ = try await server().commit(CommitWrites(writes), transaction: id)
            return .committed
        } catch {
            switch error.code {
            case .aborted, .failedPrecondition, .invalidArgument, .notFound, .resourceExhausted: return .aborted
            default: return .unknown
            }
        }
    }
}
