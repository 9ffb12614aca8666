// Random writes and queries of a client that is offline, restarted and online again: against a server that has had the
// same writes, and beside another client.

import Basics
import DocumentModel
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

/// Random edits and queries over a few documents; the same seed gives the same ones.
private struct RandomProgram {
    typealias Edit = (WriteBatch, Firestore) -> Void

    var random: SeededGenerator
    /// Documents that a server has, by their paths: only these are updated.
    var existing: Set<UTF8Text> = []

    static let paths = [
        "c/1", "c/2", "c/3", "c/10", "c/é", "c/e\u{301}", "c/a b", "c/😀", "c/\u{ffff}", "c/__x", "c/`.", "c/1/c/1",
        "c/1/c/é", "d/1/c/2", "d/1/c/%2F",
    ]
    private static let fields = ["a", "b", "m.x", "l"]

    private mutating func scalar() -> Any {
        switch random.below(22) {
        case 0: NSNull()
        case 1: Double.nan
        case 2: -0.0
        case 3: 0
        case 4, 5, 6: random.below(4)
        case 7: Double(random.below(4))
        case 8: 0.5
        case 9: Int64(1) << 53 + 1
        case 10: Int64.max
        case 11: true
        case 12: false
        case 13: ""
        case 14: random.pick(["a", "b", "é", "e\u{301}", "\u{ffff}", "😀"])
        case 15: Timestamp(seconds: Int64(random.below(3)), nanoseconds: 1000)
        case 16: GeoPoint(latitude: Double(random.below(2)), longitude: -0.0)
        case 17: Data([UInt8(random.below(2))])
        case 18: -Double.infinity
        default: random.below(3)
        }
    }

    private mutating func list() -> [Any] { (0..<random.below(4)).map { _ in scalar() } }

    private mutating func value() -> Any {
        switch random.below(6) {
        case 0: list()
        case 1: map()
        default: scalar()
        }
    }

    private mutating func map() -> [String: Any] {
        var map: [String: Any] = [:]
        for _ in 0..<random.below(3) { map[random.pick(["x", "y", "q.r", "é"])] = random.oneIn(4) ? list() : scalar() }
        return map
    }

    private mutating func data() -> [String: Any] {
        var data: [String: Any] = [:]
        for key in ["a", "b"] where !random.oneIn(4) { data[key] = value() }
        if random.oneIn(2) { data["m"] = map() }
        if random.oneIn(2) { data["l"] = list() }
        return data
    }

    private mutating func transform() -> FieldValue {
        switch random.below(4) {
        case 0: .arrayUnion(list())
        case 1: .arrayRemove(list())
        case 2: .increment(Int64(random.pick([1, -2, Int.max])))
        default: .increment(random.pick([0.5, -1, .nan]))
        }
    }

    /// The writes of one batch, for several clients.
    mutating func edit() -> Edit {
        var writes: [Edit] = []
        let count = random.oneIn(3) ? 2 + random.below(2) : 1
        var deleted: Set<UTF8Text> = []
        for _ in 0..<count {
            let path = random.pick(Self.paths)
            var data = data()
            if random.oneIn(4) { data["t"] = FieldValue.serverTimestamp() }
            switch random.below(6) {
            case 0:
                deleted.insert(UTF8Text(path))
                writes.append { batch, store in batch.deleteDocument(store.document(path)) }
            case 1:
                if random.oneIn(2) { data["b"] = FieldValue.delete() }
                if random.oneIn(2) { data["m"] = ["x": transform(), "y": FieldValue.delete()] }
                if random.oneIn(3) { data["l"] = transform() }
                writes.append { [data] batch, store in
                    batch.setData(data, forDocument: store.document(path), merge: true)
                }
            case 2:
                data["a"] = random.oneIn(2) ? transform() : value()
                data["m"] = ["x": scalar(), "y": scalar()]
                let fields: [Any] = random.oneIn(2) ? ["a", "m.y"] : ["m", "a"]
                writes.append { [data] batch, store in
                    batch.setData(data, forDocument: store.document(path), mergeFields: fields)
                }
            case 3, 4:
                // The server refuses all of a batch because of one write; here the others are seen until then.
                guard count == 1 || existing.subtracting(deleted).contains(UTF8Text(path)) else { continue }
                var changes: [AnyHashable: Any] = [:]
                for (key, value) in data where key != "m" { changes[key] = value }
                if random.oneIn(3) { changes["m.x"] = transform() }
                if random.oneIn(3) { changes["m.y"] = FieldValue.delete() }
                if random.oneIn(3) { changes["l"] = transform() }
                if random.oneIn(3) { changes["a"] = FieldValue.delete() }
                if random.oneIn(3) { changes[FieldPath(["m", "q.r"])] = value() }
                writes.append { [changes] batch, store in batch.updateData(changes, forDocument: store.document(path)) }
            default: writes.append { [data] batch, store in batch.setData(data, forDocument: store.document(path)) }
            }
        }
        return { [writes] batch, store in for write in writes { write(batch, store) } }
    }

    // MARK: Queries

    typealias MakeQuery = (Firestore) -> Query

    private mutating func filter() -> FirebaseFirestore.Filter {
        let field = random.pick(Self.fields)
        switch random.below(11) {
        case 0: return .whereField(field, isEqualTo: value())
        case 1: return .whereField(field, isLessThan: value())
        case 2: return .whereField(field, isLessThanOrEqualTo: value())
        case 3: return .whereField(field, isGreaterThan: value())
        case 4: return .whereField(field, isGreaterOrEqualTo: value())
        case 5: return .whereField("l", arrayContains: scalar())
        case 6: return .whereField("l", arrayContainsAny: list() + [scalar()])
        case 7: return .whereField(field, in: list() + [value()])
        default: return .whereField(field, isEqualTo: scalar())
        }
    }

    /// One that may stand beside no other filters.
    private mutating func negation() -> FirebaseFirestore.Filter {
        let field = random.pick(Self.fields)
        return random.oneIn(2)
            ? .whereField(field, isNotEqualTo: value()) : .whereField(field, notIn: list() + [value()])
    }

    mutating func query() -> MakeQuery {
        let group = random.oneIn(2)
        let collection = random.pick(["c", "c", "c/1/c", "d/1/c"])
        var filters: [FirebaseFirestore.Filter] = []
        switch random.below(7) {
        case 0: break
        case 1: filters = [filter(), filter()]
        case 2: filters = [.orFilter([filter(), filter()])]
        case 3: filters = [.orFilter([.andFilter([filter(), filter()]), filter()]), filter()]
        case 4: filters = random.oneIn(2) ? [negation()] : [negation(), .whereField("a", isGreaterThan: scalar())]
        default: filters = [filter()]
        }
        var orders: [(field: String?, descending: Bool)] = []
        for field in Self.fields where random.oneIn(4) { orders.append((field, random.oneIn(2))) }
        let valueCount = orders.isEmpty ? 0 : random.below(orders.count + 1)
        let start = (0..<valueCount).map { _ in value() }
        let end = (0..<valueCount).map { _ in value() }
        if random.oneIn(4) { orders.append((nil, random.oneIn(2))) }
        let cursors = random.below(6)
        let limit = random.below(5)
        let count = 1 + random.below(4)
        return { [filters, orders] store in
            var query: Query = group ? store.collectionGroup("c") : store.collection(collection)
            for filter in filters { query = query.whereFilter(filter) }
            for (field, descending) in orders {
                query =
                    field.map { query.order(by: $0, descending: descending) }
                    ?? query.order(by: FieldPath.documentID(), descending: descending)
            }
            if valueCount > 0 {
                if cursors == 0 || cursors == 2 { query = query.start(at: start) }
                if cursors == 1 { query = query.start(after: start) }
                if cursors == 3 || cursors == 2 { query = query.end(before: end) }
                if cursors == 4 { query = query.end(at: end) }
            }
            if limit == 0 { query = query.limit(to: count) }
            if limit == 1, !orders.isEmpty { query = query.limit(toLast: count) }
            return query
        }
    }
}

/// What a listener shows.
private final class Shown: Sendable {
    private struct State {
        var rows: [String] = []
        var isFromCache = true
        var isPending = false
        var problem: String?
    }

    private let state = Mutex(State())
    let includesMetadataChanges: Bool

    init(includesMetadataChanges: Bool = true) { self.includesMetadataChanges = includesMetadataChanges }

    /// A snapshot; its changes must lead from the one before to it.
    func take(_ snapshot: QuerySnapshot?, _ error: (any Error)?) {
        state.withLock { state in
            guard let snapshot else {
                state.problem = "\(String(describing: error))"
                return
            }
            var rows = state.rows
            for change in snapshot.documentChanges {
                let (old, new) = (Int(change.oldIndex), Int(change.newIndex))
                if change.type != .added, rows.indices.contains(old) { rows.remove(at: old) }
                if change.type != .removed, new <= rows.count { rows.insert(Self.row(change.document), at: new) }
            }
            state.rows = Self.rows(snapshot)
            state.isFromCache = snapshot.metadata.isFromCache
            state.isPending = snapshot.metadata.hasPendingWrites
            if rows != state.rows, state.problem == nil {
                state.problem = "the changes give \(rows), not \(state.rows)"
            }
        }
    }

    var rows: [String] { state.withLock { $0.rows } }
    var isFromCache: Bool { state.withLock { $0.isFromCache } }
    var problem: String? { state.withLock { $0.problem } }

    /// Whether these rows are shown; as those of the server, if the listener learns that.
    func shows(_ rows: [String]) -> Bool {
        state.withLock { $0.rows == rows && (!includesMetadataChanges || !$0.isFromCache && !$0.isPending) }
    }

    static func rows(_ snapshot: QuerySnapshot) -> [String] { snapshot.documents.map(row) }

    /// The path and the fields; of the field `t` only that it is there.
    static func row(_ document: DocumentSnapshot) -> String {
        var row = document.reference.path
        guard let fields = document.stored?.fields else { return row }
        var reader = FieldEntryReader(fields.byteSpan)
        while (try? reader.next()) ?? false {
            let key = String(repairingUTF8: reader.key)
            row += " \(key)="
            if key != "t" { row += (try? Value(wire: reader.value)).map { "\($0)" } ?? "?" }
        }
        return row
    }
}

@Suite(.timeLimit(.minutes(20)))
struct RandomOfflineTests {
    private let directory = TemporaryDirectory("random-offline")

    /// A server with a client of it.
    private func open(_ database: TestDatabase, cache: String? = nil) -> Firestore {
        TestFirestore.make(host: database.host, project: "p", cache: cache.map { directory.path(of: $0) })
    }

    private func commit(_ edit: RandomProgram.Edit, _ store: Firestore) async throws {
        let batch = store.batch()
        edit(batch, store)
        do { try await batch.commit() } catch FirestoreErrorCode.notFound {}
    }

    private func expected(_ make: RandomProgram.MakeQuery, _ store: Firestore) async throws -> [String]? {
        do {
            return Shown.rows(try await make(store).getDocuments(source: .server))
        } catch FirestoreErrorCode.invalidArgument {
            return nil
        }
    }

    /// The rows that only one of two results has.
    private func difference(_ shown: [String], _ wanted: [String]) -> String {
        let (extra, missing) = (shown.filter { !wanted.contains($0) }, wanted.filter { !shown.contains($0) })
        return "\(extra) in place of \(missing)"
    }

    /// Waits until a listener shows what it is to show. Before, it may have done so for a moment: with pending writes.
    private func isSeen(_ condition: () -> Bool) async throws -> Bool {
        var patience = Patience()
        while true {
            if condition() { return true }
            guard patience.lasts else { return false }
            try await Task.sleep(for: .milliseconds(1))
            patience.beginLook()
        }
    }

    private static var seeds: [UInt64] {
        let environment = ProcessInfo.processInfo.environment
        if let seed = UInt64(environment["HEARTH_OFFLINE_SEED"] ?? "") { return [seed] }
        return (0..<(environment["HEARTH_SOAK"] == nil ? 4 : 100)).map { _ in .random(in: 0 ... .max) }
    }

    @Test(arguments: seeds)
    func `A client that is offline, restarted and online again shows what a server with its writes has`(
        seed: UInt64
    ) async throws {
        print("HEARTH_OFFLINE_SEED=\(seed)")
        var program = RandomProgram(random: SeededGenerator(seed: seed))
        let (own, model) = (try TestBackend.server.start(), try TestBackend.memory.start())
        let (online, other) = (open(model), open(own))
        var offline = open(own, cache: "cache")
        var listeners: [(make: RandomProgram.MakeQuery, shown: Shown, registration: any ListenerRegistration)] = []
        func listen(_ make: @escaping RandomProgram.MakeQuery) {
            let shown = Shown()
            let registration = make(offline).addSnapshotListener(includeMetadataChanges: true) { snapshot, error in
                shown.take(snapshot, error)
            }
            listeners.append((make, shown, registration))
        }
        func compare(_ what: String, isOnline: Bool) async throws {
            for (number, listener) in listeners.enumerated() {
                guard let rows = try await expected(listener.make, online) else { continue }
                let shown = listener.shown
                let isShown = try await isSeen { shown.rows == rows && !(isOnline && shown.isFromCache) }
                try #require(
                    isShown,
                    """
                    seed \(seed), \(what), listener \(number): \(listener.make(offline).definition) shows
                    \(difference(shown.rows, rows)) \(shown.problem ?? "")
                    """)
                #expect(listener.shown.problem == nil, "seed \(seed), \(what)")
            }
            for _ in 0..<12 {
                let make = program.query()
                guard let rows = try await expected(make, online) else { continue }
                let found = Shown.rows(try await make(offline).getDocuments(source: isOnline ? .server : .cache))
                try #require(
                    found == rows,
                    "seed \(seed), \(what): \(make(offline).definition) finds \(difference(found, rows))")
            }
        }
        func update(_ edits: Int, _ body: (@escaping RandomProgram.Edit) async throws -> Void) async throws {
            for _ in 0..<edits {
                let all = try await online.collectionGroup("c").getDocuments(source: .server)
                program.existing = Set(all.documents.map { UTF8Text($0.reference.path) })
                let edit = program.edit()
                try await body(edit)
                try await commit(edit, online)
            }
        }
        let everything: RandomProgram.MakeQuery = { $0.collectionGroup("c") }
        listen(everything)
        for round in 0..<4 {
            try await compare("round \(round) begins", isOnline: true)
            try await offline.disableNetwork()
            for _ in 0..<3 { listen(program.query()) }
            for step in 0..<3 {
                try await update(4) { edit in
                    let batch = offline.batch()
                    edit(batch, offline)
                    batch.commit(completion: nil)
                }
                try await compare("round \(round), step \(step) offline", isOnline: false)
            }
            if program.random.oneIn(2) {
                try await offline.terminate()
                offline = open(own, cache: "cache")
                try await offline.disableNetwork()
                let makes = listeners.map(\.make)
                listeners = []
                for make in makes { listen(make) }
                try await compare("round \(round) restarted", isOnline: false)
            }
            try await offline.enableNetwork()
            try await offline.waitForPendingWrites()
            for make in [everything, { $0.collection("c") }] {
                let rows = try await expected(make, online)
                #expect(try await expected(make, other) == rows, "seed \(seed), round \(round) online")
            }
            try await compare("round \(round) online", isOnline: true)
            try await update(4) { edit in try await commit(edit, other) }
            try await compare("round \(round), changes of another client", isOnline: true)
            while listeners.count > 4 { listeners.remove(at: 1).registration.remove() }
        }
        for store in [offline, online, other] { try await store.terminate() }
        #expect(own.stop() && model.stop())
    }

    @Test(arguments: seeds)
    func `After any writes, outages and restarts beside another client listeners show what the server has`(
        seed: UInt64
    ) async throws {
        print("HEARTH_OFFLINE_SEED=\(seed)")
        var program = RandomProgram(random: SeededGenerator(seed: seed))
        let database = try TestBackend.memory.start()
        let other = open(database)
        let isEager = program.random.oneIn(4)
        func openClient() -> Firestore {
            if !isEager { return open(database, cache: "cache") }
            let client = open(database)
            let settings = client.settings
            settings.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryEagerGCSetting())
            client.settings = settings
            return client
        }
        var client = openClient()
        let openTransactions = Mutex(0)
        var listeners: [(make: RandomProgram.MakeQuery, shown: Shown, registration: any ListenerRegistration)] = []
        func listen(_ make: @escaping RandomProgram.MakeQuery) {
            let shown = Shown(includesMetadataChanges: listeners.isEmpty || !program.random.oneIn(4))
            let registration = make(client).addSnapshotListener(
                includeMetadataChanges: shown.includesMetadataChanges
            ) { snapshot, error in
                shown.take(snapshot, error)
            }
            listeners.append((make, shown, registration))
        }
        func compare(_ what: String) async throws {
            for (number, listener) in listeners.enumerated() {
                guard let rows = try await expected(listener.make, other) else { continue }
                let isShown = try await isSeen { listener.shown.shows(rows) }
                try #require(
                    isShown && listener.shown.problem == nil,
                    """
                    seed \(seed), \(what), listener \(number): \(listener.make(client).definition) shows
                    \(difference(listener.shown.rows, rows)), from the cache: \(listener.shown.isFromCache)
                    \(listener.shown.problem ?? "")
                    """)
            }
            for _ in 0..<6 {
                let make = program.query()
                guard let rows = try await expected(make, other) else { continue }
                let found = Shown.rows(try await make(client).getDocuments(source: .cache))
                try #require(
                    found == rows,
                    "seed \(seed), \(what): \(make(client).definition) finds \(difference(found, rows))")
            }
        }
        // The cache then has all documents.
        listen { $0.collectionGroup("c") }
        for round in 0..<6 {
            for _ in 0..<50 {
                switch program.random.below(20) {
                case 0...6:
                    let batch = client.batch()
                    program.edit()(batch, client)
                    batch.commit(completion: nil)
                case 7...11: try await commit(program.edit(), other)
                case 12: client.disableNetwork(completion: nil)
                case 13, 14: client.enableNetwork(completion: nil)
                case 15: if listeners.count < 8 { listen(program.query()) }
                case 16:
                    guard listeners.count > 1 else { continue }
                    listeners.remove(at: 1 + program.random.below(listeners.count - 1)).registration.remove()
                case 17: program.query()(client).getDocuments { _, _ in }
                case 18 where program.random.oneIn(2):
                    // With a document that the server may not have.
                    var bundle = BundleTests.Builder(id: "b\(round)\(listeners.count)")
                    for path in ["c/1", "c/2", "c/9"] where program.random.oneIn(2) { bundle.add(path, 1) }
                    client.loadBundle(bundle.data, completion: nil)
                case 18:
                    let reference = client.document(program.random.pick(RandomProgram.paths))
                    openTransactions.withLock { $0 += 1 }
                    client.runTransaction { transaction, _ in
                        let exists = (try? transaction.getDocument(reference))?.exists ?? false
                        return transaction.setData(["a": exists], forDocument: reference, merge: true)
                    } completion: { _, _ in
                        openTransactions.withLock { $0 -= 1 }
                    }
                default:
                    guard program.random.oneIn(3) else { continue }
                    try await client.terminate()
                    client = openClient()
                    let makes = listeners.map(\.make)
                    listeners = []
                    for make in makes { listen(make) }
                }
            }
            try await client.enableNetwork()
            try await client.waitForPendingWrites()
            #expect(try await isSeen { openTransactions.withLock { $0 } == 0 })
            try await compare("round \(round)")
        }
        for store in [client, other] { try await store.terminate() }
    }
}
