// Views of queries against the query itself, run again after each change; and how much of a view a change looks at.

import Basics
import ClientCache
import DocumentModel
import FirestoreMessages
import QueryEngine
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20)))
struct SyncViewTests {
    private let firestore = TestFirestore.detached()

    private func name(_ id: String) -> String { "\(firestore.documentsRoot)/c/\(id)" }

    private func open() throws -> LocalStore {
        try LocalStore(LocalStore.Configuration(database: firestore.databaseName)) { _ in }
    }

    private static func fields(_ n: Int, _ m: Int) -> [UInt8] {
        var writer = ByteBuffer()
        for (key, number) in [("m", m), ("n", n)] {
            writer.withLengthPrefix(field: 2) { entry in
                entry.appendField(1, string: key)
                entry.withLengthPrefix(field: 2) { Value.integer(Int64(number)).encode(into: &$0) }
            }
        }
        return writer.copyBytes()
    }

    private func found(_ id: String, _ n: Int, _ m: Int, at time: UInt64) -> RemoteUpdate {
        RemoteUpdate(
            name: name(id),
            content: .found(fields: Self.fields(n, m), createMicroseconds: time, updateMicroseconds: time))
    }

    /// The shapes of queries, each with a name.
    private var queries: [(String, Query)] {
        let all = firestore.collection("c")
        // A range that has no values adds nothing to the order.
        let eitherRange = FirebaseFirestore.Filter.orFilter([
            .whereField("m", isLessThan: Double.nan), .whereField("n", isGreaterThan: 5),
        ])
        let bases: [(String, Query)] = [
            ("all", all), ("ordered", all.order(by: "n")), ("descending", all.order(by: "n", descending: true)),
            ("range", all.whereField("n", isGreaterThan: 5)), ("equal", all.whereField("m", isEqualTo: 1)),
            ("one of two ranges", all.whereFilter(eitherRange)),
            ("two orders", all.order(by: "m").order(by: "n", descending: true)),
            ("from a cursor", all.order(by: "n").start(at: [4])),
            ("between cursors", all.order(by: "n").start(after: [3]).end(at: [15])),
        ]
        let limited = bases.flatMap { name, query in
            [("first 4 of \(name)", query.limit(to: 4)), ("last 4 of \(name)", query.limit(toLast: 4))]
        }
        // The last results need an order.
        return bases + limited.filter { !$0.0.hasSuffix("last 4 of all") && $0.0 != "last 4 of equal" }
    }

    // MARK: A model

    /// A view, the state of a server, and the rows of a program that applies the changes.
    private struct Run {
        let store: LocalStore
        let plan: QueryPlan
        let isReversed: Bool
        var view: SyncView
        var time: UInt64 = 1000
        /// What the program shows.
        var shown: [String]
        var members: Set<String> = []
        var isCurrent = false
        var latest: ViewSnapshot
        /// Pending batches with their documents.
        var pending: [(number: UInt64, id: String, write: [Int]?)] = []
        /// The server's documents.
        var remote: [String: [Int]] = [:]

        mutating func take(_ changes: [LocalChange], at time: UInt64? = nil) throws {
            let seen = changes.map { SyncView.Change($0.name, $0.state, namePrefix: store.namePrefixByteCount) }
            guard let snapshot = try view.apply(seen, snapshotMicroseconds: time, store: store) else { return }
            for change in snapshot.changes ?? [] {
                if let index = change.oldIndex { expectEqual(shown.remove(at: index), change.row.name) }
                if let index = change.newIndex { shown.insert(change.row.name, at: index) }
            }
            latest = snapshot
        }

        /// The results of the cache.
        func results() throws -> [(name: String, document: LocalDocument)] {
            var rows: [(String, LocalDocument)] = []
            try store.run(plan) { rows.append(($0, $1)) }
            return isReversed ? rows.reversed() : rows
        }
    }

    private func run(_ query: Query) throws -> Run {
        let subject = SyncEngine.Subject(query)
        let viewSubject = try SyncEngine.viewSubject(subject, surplus: 2)
        guard case .query(let plan, let isReversed, _) = viewSubject else { throw WaitedTooLong("never") }
        let store = try open()
        var view = SyncView(viewSubject)
        try view.load(from: store)
        let snapshot = view.snapshot
        return Run(store: store, plan: plan, isReversed: isReversed, view: view, shown: [], latest: snapshot)
    }

    @Test
    func `Random changes: the rows, limbo and metadata are those of the query over the cache, for all shapes`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        for (shape, query) in queries {
            var run = try run(query)
            for step in 0..<250 {
                try self.step(&run, &generator)
                try check(run, "seed \(seed), \(shape), step \(step)")
            }
        }
    }

    private func step(_ run: inout Run, _ generator: inout SeededGenerator) throws {
        run.time += 10
        let ids = (0..<24).map { "d\($0 + 10)" }
        let some = Array(ids.shuffled(using: &generator).prefix(1 + generator.below(4)))
        switch generator.below(9) {
        case 0, 1:
            // Another client writes, and the server sends its state.
            for id in some {
                run.remote[id] = generator.oneIn(4) ? nil : [generator.below(20), generator.below(3)]
            }
            try send(&run, some)
        case 2:
            // A read brings documents of the server, which the target may not have.
            try run.take(try run.store.apply(some.compactMap { update($0, run) }))
        case 3, 4:
            let id = some[0]
            let write = generator.oneIn(4) ? nil : [generator.below(20), generator.below(3)]
            var writes = CommitWrites(database: firestore.databaseName)
            if let write {
                writes.set(name(id), fields: Self.fields(write[0], write[1]))
            } else {
                writes.delete(name(id))
            }
            let identity = BatchIdentity(sessionHigh: 1, sessionLow: 1, sequence: run.time)
            let (number, changes) = try run.store.enqueue(writes.request(), identity: identity)
            run.pending.append((number, id, write))
            try run.take(changes)
        case 5, 6:
            guard !run.pending.isEmpty else { return }
            let (number, id, write) = run.pending.removeFirst()
            let isRejected = generator.oneIn(4)
            if !isRejected { run.remote[id] = write }
            let outcome: BatchReply.Outcome =
                isRejected
                ? .rejected
                : .acknowledged(
                    results: [WriteResult(updateMicroseconds: write == nil ? nil : run.time)],
                    commitMicroseconds: run.time)
            try run.take(try run.store.settle([BatchReply(number, outcome)]).changes)
            if generator.oneIn(2) { try send(&run, isRejected ? [] : [id]) }
        case 7 where generator.oneIn(3):
            run.view.disconnected()
            run.isCurrent = false
            try run.take([])
        default: try send(&run, [])
        }
    }

    private func update(_ id: String, _ run: Run) -> RemoteUpdate? {
        guard let numbers = run.remote[id] else {
            return RemoteUpdate(name: name(id), content: .missing(readMicroseconds: run.time))
        }
        return found(id, numbers[0], numbers[1], at: run.time)
    }

    /// The server sends a consistent state: some documents, and the members of the target, by its own query.
    private func send(_ run: inout Run, _ ids: [String]) throws {
        let server = try open()
        _ = try server.apply(run.remote.map { found($0.key, $0.value[0], $0.value[1], at: run.time) })
        var members: Set<String> = []
        try server.run(run.plan) { name, _ in members.insert(name) }
        let sent = Set(ids).union(
            members.subtracting(run.members).union(run.members.subtracting(members)).map {
                String($0.split(separator: "/").last ?? "")
            })
        run.view.apply(added: Array(members.subtracting(run.members)), removed: Array(run.members.subtracting(members)))
        run.members = members
        run.isCurrent = true
        try run.take(try run.store.apply(sent.compactMap { update($0, run) }), at: run.time)
    }

    private func check(_ run: Run, _ place: Comment) throws {
        let rows = Array(run.latest.rows)
        expectEqual(run.shown, rows.map(\.name), place)
        expectEqual(run.latest.hasPendingWrites, rows.contains { $0.document.hasPendingWrites }, place)
        expectEqual(run.latest.isFromCache, !(run.isCurrent && run.view.limbo.isEmpty), place)
        let limbo = rows.filter { !run.members.contains($0.name) && !$0.document.hasPendingWrites }.map(\.name)
        expectEqual(run.view.limbo, run.isCurrent ? Set(limbo.map { UTF8Text($0) }) : [], place)
        // While an acknowledged write is held back, the program sees an earlier state.
        if run.view.isDue { return }
        let expected = try run.results()
        expectEqual(rows.map(\.name), expected.map(\.name), place)
        expectEqual(rows.map(\.document.fields), expected.map(\.document.fields), place)
    }

    // MARK: Work

    private func change(_ id: Int, _ n: Int, _ time: UInt64, _ store: LocalStore) -> SyncView.Change {
        let document = LocalDocument(
            fields: Self.fields(n, 0), createMicroseconds: 1, updateMicroseconds: time)
        return SyncView.Change(name("d\(id)"), .found(document), namePrefix: store.namePrefixByteCount)
    }

    @Test
    func `A change under a listener of 100,000 documents looks at the documents that change, and at no others`() throws
    {
        let store = try open()
        let count = 100_000
        let subject = SyncEngine.Subject(firestore.collection("c").order(by: "n"))
        var view = SyncView(try SyncEngine.viewSubject(subject))
        view.apply(added: (0..<count).map { name("d\($0)") }, removed: [])
        _ = try view.apply((0..<count).map { change($0, $0, 1, store) }, snapshotMicroseconds: 1, store: store)
        let before = view.examinedCount
        for id in [0, 50_000, 99_999] {
            view.apply(added: [name("d\(id)")], removed: [])
            let snapshot = try view.apply([change(id, id + 50_000, 2, store)], snapshotMicroseconds: 2, store: store)
            expectEqual(snapshot?.changes?.count, 1)
            expectEqual(snapshot?.rows.count, count)
        }
        expect(view.examinedCount - before <= 3 * 4)
    }

    @Test
    func `Documents that leave the results of a limited query are replaced without a query for each`() throws {
        let store = try open()
        let (count, changes) = (3000, 2000)
        _ = try store.apply((0..<count).map { found("d\($0)", $0, 0, at: 1) })
        let subject = SyncEngine.Subject(firestore.collection("c").order(by: "n").limit(to: 50))
        var view = SyncView(try SyncEngine.viewSubject(subject))
        try view.load(from: store)
        for number in 0..<changes {
            // The first one becomes the last one.
            let update = found("d\(number)", count + number, 0, at: UInt64(number + 2))
            let seen = try store.apply([update]).map {
                SyncView.Change($0.name, $0.state, namePrefix: store.namePrefixByteCount)
            }
            let snapshot = try view.apply(seen, snapshotMicroseconds: nil, store: store)
            expectEqual(snapshot?.changes?.map(\.row.name), [name("d\(number)"), name("d\(number + 50)")])
        }
        expectEqual(view.snapshot.rows.map(\.name), (changes..<changes + 50).map { name("d\($0)") })
        expect(view.examinedCount < 10 * changes)
    }
}
