// Random writes and queries of a client that is offline, restarted and online again: against a server that has had the
// same writes, beside another client, and for several users under rules.

import Basics
import ClientTestSupport
import DocumentModel
import FirestoreMessages
import Foundation
import HearthClient
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
    /// Of so many queries one has a limit, and another one a limit to its last results if it has an order.
    var limits = 5

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

    /// One of the ids, or of the paths in a group.
    private mutating func idFilter(inGroup group: Bool) -> FirebaseFirestore.Filter {
        let field = FirebaseFirestore.FieldPath.documentID()
        let ids = (0...random.below(3)).map { _ in id(inGroup: group) }
        switch random.below(7) {
        case 0: return .whereField(field, isLessThan: ids[0])
        case 1: return .whereField(field, isLessThanOrEqualTo: ids[0])
        case 2: return .whereField(field, isGreaterThan: ids[0])
        case 3: return .whereField(field, isGreaterOrEqualTo: ids[0])
        case 4: return .whereField(field, in: ids)
        case 5: return .whereField(field, isEqualTo: ids[0])
        default: return .whereField(field, isNotEqualTo: ids[0])
        }
    }

    private mutating func id(inGroup group: Bool) -> String {
        let path = random.pick(Self.paths + ["c/0", "e/1", "c/1/d/2"])
        return group ? path : String(path.split(separator: "/").last ?? "")
    }

    mutating func query() -> MakeQuery {
        let group = random.oneIn(2)
        let collection = random.pick(["c", "c", "c/1/c", "d/1/c"])
        var filters: [FirebaseFirestore.Filter] = []
        let kind = random.below(7)
        switch kind {
        case 0: break
        case 1: filters = [filter(), filter()]
        case 2: filters = [.orFilter([filter(), filter()])]
        case 3: filters = [.orFilter([.andFilter([filter(), filter()]), filter()]), filter()]
        case 4: filters = random.oneIn(2) ? [negation()] : [negation(), .whereField("a", isGreaterThan: scalar())]
        default: filters = [filter()]
        }
        if kind != 4, random.oneIn(4) { filters.append(idFilter(inGroup: group)) }
        if random.oneIn(12) { filters = [.orFilter([idFilter(inGroup: group), filter()])] }
        var orders: [(field: String?, descending: Bool)] = []
        for field in Self.fields where random.oneIn(4) { orders.append((field, random.oneIn(2))) }
        let valueCount = orders.isEmpty ? 0 : random.below(orders.count + 1)
        let start = (0..<valueCount).map { _ in value() }
        let end = (0..<valueCount).map { _ in value() }
        if random.oneIn(4) { orders.append((nil, random.oneIn(2))) }
        let cursorID = id(inGroup: group)
        let hasCursorID = valueCount == orders.count - 1 && orders.last?.field == nil && random.oneIn(2)
        let cursors = random.below(6)
        let limit = random.below(limits)
        let count = 1 + random.below(4)
        return { [filters, orders] store in
            var query: Query = group ? store.collectionGroup("c") : store.collection(collection)
            for filter in filters { query = query.whereFilter(filter) }
            for (field, descending) in orders {
                query =
                    field.map { query.order(by: $0, descending: descending) }
                    ?? query.order(by: FieldPath.documentID(), descending: descending)
            }
            let start = hasCursorID ? start + [cursorID] : start
            let end = hasCursorID ? end + [cursorID] : end
            if !start.isEmpty {
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
        var isDenied = false
        var last: QuerySnapshot?
        var problem: String?
    }

    private let state = Mutex(State())
    let includesMetadataChanges: Bool
    /// The users whose pending writes may be shown; nil if there are no users.
    private let users: ShownUsers?

    init(includesMetadataChanges: Bool = true, users: ShownUsers? = nil) {
        self.includesMetadataChanges = includesMetadataChanges
        self.users = users
    }

    /// A snapshot; its changes must lead from the one before to it.
    func take(_ snapshot: QuerySnapshot?, _ error: (any Error)?) {
        state.withLock { state in
            if state.isDenied { state.problem = "there is a call after the denial" }
            guard let snapshot else {
                state.isDenied = (error as NSError?)?.code == FirestoreErrorCode.permissionDenied.rawValue
                if !state.isDenied || users == nil { state.problem = "\(String(describing: error))" }
                return
            }
            if let other = users?.other(in: snapshot) { state.problem = "there is a pending write of \(other)" }
            if let last = state.last, looksLike(last, snapshot) { state.problem = "a snapshot is as the one before" }
            state.last = snapshot
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

    /// Whether the listener sees nothing new.
    private func looksLike(_ one: QuerySnapshot, _ other: QuerySnapshot) -> Bool {
        if includesMetadataChanges, one.metadata != other.metadata { return false }
        return one.documents.elementsEqual(other.documents) { one, other in
            guard let before = one.stored, let after = other.stored else { return false }
            return one.reference == other.reference && before.looksLike(after)
                && (!includesMetadataChanges || before.hasPendingWrites == after.hasPendingWrites)
        }
    }

    var rows: [String] { state.withLock { $0.rows } }
    var isFromCache: Bool { state.withLock { $0.isFromCache } }
    var isDenied: Bool { state.withLock { $0.isDenied } }
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

/// Whose pending writes a client may show now. Each batch of a user changes a document that names this user.
private final class ShownUsers: Sendable {
    private let names: Mutex<Set<String>>

    init(_ name: String) { names = Mutex([name]) }

    func add(_ name: String) { names.withLock { _ = $0.insert(name) } }

    func become(_ name: String) { names.withLock { $0 = [name] } }

    /// Another user whose pending write a snapshot shows.
    func other(in snapshot: QuerySnapshot) -> String? {
        let pending = snapshot.documents.filter { $0.metadata.hasPendingWrites }
        let users = pending.compactMap { $0.get("user") as? String }
        return names.withLock { names in users.first { !names.contains($0) } }
    }
}

// MARK: Steps and comparisons

private func commit(_ edit: RandomProgram.Edit, _ store: Firestore) async throws {
    let batch = store.batch()
    edit(batch, store)
    do { try await batch.commit() } catch FirestoreErrorCode.notFound {}
}

/// What a query has to find.
private enum Expected: Equatable {
    case rows([String])
    /// The user may not list this.
    case denied
    case invalid
}

private func expected(_ make: RandomProgram.MakeQuery, _ store: Firestore) async throws -> Expected {
    do {
        return .rows(Shown.rows(try await make(store).getDocuments(source: .server)))
    } catch FirestoreErrorCode.invalidArgument {
        return .invalid
    } catch FirestoreErrorCode.permissionDenied {
        return .denied
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

extension Firestore {
    /// Shows this token from the first use on.
    fileprivate func setToken(_ token: @escaping @Sendable () -> String?) {
        let settings = settings
        settings.tokenProvider = { _ in token() }
        self.settings = settings
    }
}

@Suite(.timeLimit(.minutes(20)))
struct RandomOfflineTests {
    private let directory = TemporaryDirectory("random-offline")

    /// A server with a client of it.
    private func open(_ database: TestDatabase, cache: String? = nil) -> Firestore {
        TestFirestore.make(host: database.host, project: "p", cache: cache.map { directory.path(of: $0) })
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
                guard case .rows(let rows) = try await expected(listener.make, online) else { continue }
                let shown = listener.shown
                let isShown = try await isSeen { shown.rows == rows && !(isOnline && shown.isFromCache) }
                try #require(
                    isShown,
                    """
                    seed \(seed), \(what), listener \(number): \(listener.make(offline).definition) shows
                    \(difference(shown.rows, rows)) \(shown.problem ?? "")
                    """)
                expectNil(listener.shown.problem, "seed \(seed), \(what)")
            }
            for _ in 0..<12 {
                let make = program.query()
                guard case .rows(let rows) = try await expected(make, online) else { continue }
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
                try await expectEqual(expected(make, other), rows, "seed \(seed), round \(round) online")
            }
            try await compare("round \(round) online", isOnline: true)
            try await update(4) { edit in try await commit(edit, other) }
            try await compare("round \(round), changes of another client", isOnline: true)
            while listeners.count > 4 { listeners.remove(at: 1).registration.remove() }
        }
        for store in [offline, online, other] { try await store.terminate() }
        expect(own.stop() && model.stop())
    }

    @Test(arguments: seeds)
    func `After any writes, outages and restarts beside another client listeners show what the server has`(
        seed: UInt64
    ) async throws {
        print("HEARTH_OFFLINE_SEED=\(seed)")
        let run = RandomRun(seed: seed, host: try TestBackend.memory.start().host)
        try await run.finish()
    }

    /// A server that has what is written to `store`, and is not available for commits.
    private func server(refusingWritesTo store: Firestore) throws -> FakeServer {
        let client = try store.client()
        return try FakeServer { call in
            guard call.method == .runQuery, let request = try? RunQueryRequest(wire: call.payload.byteSpan) else {
                return .fail(.unavailable, "later")
            }
            let found = Mutex<Result<QueryReply, RequestError>?>(nil)
            let end = DispatchSemaphore(value: 0)
            client.collectQuery(request, options: .standard) { result in
                found.withLock { $0 = result }
                end.signal()
            }
            end.wait()
            switch found.withLock({ $0 }) {
            case .success(let reply):
                let documents = reply.documents.map { document in
                    RunQueryResponse(
                        document: DocumentMessage(
                            name: document.name, fields: document.content.fields,
                            createTime: document.content.createTime, updateTime: document.content.updateTime),
                        readTime: reply.readTime)
                }
                return .stream((documents + [RunQueryResponse(readTime: reply.readTime)]).map { $0.encodedBytes() })
            case .failure(let error): return .fail(error.code, error.message)
            case nil: return .fail(.internal, "no result")
            }
        }
    }

    @Test(arguments: seeds)
    func `Queries of a server that takes no writes have the pending ones, whatever their limits are`(
        seed: UInt64
    ) async throws {
        print("HEARTH_OFFLINE_SEED=\(seed)")
        var program = RandomProgram(random: SeededGenerator(seed: seed))
        program.limits = 3
        let (served, model) = (open(try TestBackend.memory.start()), open(try TestBackend.memory.start()))
        let server = try server(refusingWritesTo: served)
        let client = TestFirestore.make(host: server.address, project: "p")
        func edit() async throws -> RandomProgram.Edit {
            let all = try await model.collectionGroup("c").getDocuments(source: .server)
            program.existing = Set(all.documents.map { UTF8Text($0.reference.path) })
            let edit = program.edit()
            try await commit(edit, model)
            return edit
        }
        for _ in 0..<12 { try await commit(try await edit(), served) }
        // The client knows all documents.
        try await client.collectionGroup("c").getDocuments(source: .server)
        for _ in 0..<5 {
            let batch = client.batch()
            try await edit()(batch, client)
            batch.commit(completion: nil)
            for _ in 0..<10 {
                let make = program.query()
                guard case .rows(let rows) = try await expected(make, model) else { continue }
                let found = Shown.rows(try await make(client).getDocuments(source: .server))
                try #require(
                    found == rows, "seed \(seed): \(make(client).definition) finds \(difference(found, rows))")
            }
        }
        for store in [client, served, model] { try await store.terminate() }
    }

    @Test(arguments: seeds)
    func `After the server has gone back to earlier states listeners show what it has`(seed: UInt64) async throws {
        print("HEARTH_OFFLINE_SEED=\(seed)")
        let server = try RestoredServer(directory.path(of: "restored"))
        let run = RandomRun(seed: seed, host: "127.0.0.1:\(server.port)", restored: server)
        try await run.finish()
        expectEqual(server.stop(), 0)
    }

    @Test(arguments: seeds)
    func `A client of several users shows each of them what the rules allow, and sends the writes of each as theirs`(
        seed: UInt64
    ) async throws {
        print("HEARTH_OFFLINE_SEED=\(seed)")
        let rules = directory.path(of: "rules")
        try RandomUsers.rules.write(toFile: rules, atomically: true, encoding: .utf8)
        let server = try ServerProcess(
            data: directory.path(of: "data"), arguments: ["--emulator", "--rules", rules])
        let run = RandomRun(seed: seed, host: "127.0.0.1:\(server.port)", users: RandomUsers())
        try await run.finish()
        expectEqual(server.stop(), 0)
    }
}

/// A client that does anything beside another one of the same database: for one user without rules, or for several.
private final class RandomRun {
    private typealias Listener = (
        make: RandomProgram.MakeQuery, shown: Shown, registration: any ListenerRegistration
    )

    private let seed: UInt64
    private var program: RandomProgram
    private let host: String
    private let directory = TemporaryDirectory("random-run")
    private let users: RandomUsers?
    private let restored: RestoredServer?
    /// May do everything.
    private let other: Firestore
    private let isEager: Bool
    /// Whether a listener gets all documents, so that the cache has them.
    private let knowsEverything: Bool
    private lazy var client = openClient()
    private var listeners: [Listener] = []
    /// Transactions and bundles that have not come to their end.
    private let openCalls = Mutex(0)

    init(seed: UInt64, host: String, users: RandomUsers? = nil, restored: RestoredServer? = nil) {
        (self.seed, self.host, self.users, self.restored) = (seed, host, users, restored)
        program = RandomProgram(random: SeededGenerator(seed: seed))
        other = TestFirestore.make(host: host, project: "p")
        if users != nil { other.setToken { "owner" } }
        isEager = program.random.oneIn(4)
        knowsEverything = program.random.oneIn(2)
        if !knowsEverything { program.limits = 2 }
    }

    private func openClient() -> Firestore {
        let client = TestFirestore.make(host: host, project: "p", cache: isEager ? nil : directory.path(of: "cache"))
        if isEager {
            let settings = client.settings
            settings.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryEagerGCSetting())
            client.settings = settings
        }
        if let users { client.setToken { [user = users.user] in user.token } }
        return client
    }

    func finish() async throws {
        try await users?.begin(other, host)
        try await becomeKnown()
        // The cache then has all documents, those that the user may list.
        if knowsEverything { listen { $0.collectionGroup("c") } } else { listen { $0.collection("none") } }
        for round in 0..<6 {
            for _ in 0..<50 { try await step(round) }
            // The writes of one may be on their way when another one comes.
            try await forEachUser { _ in
                try await client.enableNetwork()
                try await client.waitForPendingWrites()
                try await expect(isSeen { self.openCalls.withLock { $0 } == 0 })
            }
            try await forEachUser { user in try await compare("round \(round) \(user)") }
            try await users?.check(other, isOrdered: !isEager, "seed \(seed), round \(round)")
        }
        try await users?.finish()
        for store in [client, other] { try await store.terminate() }
    }

    private func forEachUser(_ body: (String) async throws -> Void) async throws {
        for user in users?.shuffled(&program.random) ?? [""] {
            try await users?.become(user, client)
            try await body(user)
        }
    }

    // MARK: Steps

    private func step(_ round: Int) async throws {
        if let restored, program.random.oneIn(30) { try restored.restart(&program.random) }
        switch program.random.below(users == nil ? 20 : 24) {
        case 0...6: write()
        case 7...11: try await commit(program.edit(), other)
        case 12: client.disableNetwork(completion: nil)
        case 13, 14: client.enableNetwork(completion: nil)
        case 15: if listeners.count < 8 { listen(program.query()) }
        case 16:
            guard listeners.count > 1 else { return }
            listeners.remove(at: 1 + program.random.below(listeners.count - 1)).registration.remove()
        case 17: program.query()(client).getDocuments { _, _ in }
        case 18 where program.random.oneIn(2):
            // With a document that the server may not have.
            var bundle = BundleTests.Builder(id: "b\(round)\(listeners.count)")
            for path in ["c/1", "c/2", "c/9"] where program.random.oneIn(2) { bundle.add(path, 1) }
            openCalls.withLock { $0 += 1 }
            client.loadBundle(bundle.data) { _, _ in self.openCalls.withLock { $0 -= 1 } }
        case 18: transact()
        case 19:
            guard program.random.oneIn(3) else { return }
            try await client.terminate()
            // Its last calls of the program.
            client.settings.dispatchQueue.sync {}
            client = openClient()
            try await becomeKnown()
            listenAgain(to: listeners)
        case 20, 21: try await users?.changeGrant(&program.random, other)
        default: try await becomeAnother()
        }
    }

    private func write() {
        let batch = client.batch()
        guard let users else {
            program.edit()(batch, client)
            return batch.commit(completion: nil)
        }
        let isPlain = program.random.oneIn(4)
        if !isPlain { program.edit()(batch, client) }
        users.commit(batch, isPlain: isPlain, client)
    }

    private func transact() {
        let reference = client.document(program.random.pick(RandomProgram.paths))
        openCalls.withLock { $0 += 1 }
        client.runTransaction { transaction, _ in
            let exists = (try? transaction.getDocument(reference))?.exists ?? false
            return transaction.setData(["a": exists], forDocument: reference, merge: true)
        } completion: { _, _ in
            self.openCalls.withLock { $0 -= 1 }
        }
    }

    private func becomeKnown() async throws { if let users { try await users.become(users.user.value, client) } }

    private func becomeAnother() async throws {
        guard let users, let user = users.shuffled(&program.random).first else { return }
        try await users.become(user, client)
        try await users.checkPending(client, "seed \(seed)")
    }

    // MARK: Listeners

    private func listen(_ make: @escaping RandomProgram.MakeQuery) {
        let includesAll = listeners.isEmpty || !program.random.oneIn(4)
        listeners.append(listener(make, Shown(includesMetadataChanges: includesAll, users: users?.shown)))
    }

    private func listener(_ make: @escaping RandomProgram.MakeQuery, _ shown: Shown) -> Listener {
        let registration = make(client).addSnapshotListener(
            includeMetadataChanges: shown.includesMetadataChanges
        ) { snapshot, error in
            shown.take(snapshot, error)
        }
        return (make, shown, registration)
    }

    private func listenAgain(to earlier: [Listener]) {
        listeners = []
        for listener in earlier { listen(listener.make) }
    }

    // MARK: Comparisons

    private func compare(_ what: String) async throws {
        let reader = users?.reader ?? other
        for number in listeners.indices { try await compare(number, reader, "seed \(seed), \(what)") }
        // Without the first listener the cache lacks what nobody has asked for.
        if listeners[0].shown.isDenied { return }
        for _ in 0..<6 {
            let make = program.query()
            guard case .rows(let rows) = try await expected(make, reader) else { continue }
            let source: FirestoreSource = knowsEverything ? .cache : .server
            let found = Shown.rows(try await make(client).getDocuments(source: source))
            try #require(
                found == rows, "seed \(seed), \(what): \(make(client).definition) finds \(difference(found, rows))")
        }
    }

    private func compare(_ number: Int, _ reader: Firestore, _ what: String) async throws {
        let make = listeners[number].make
        let expected = try await expected(make, reader)
        // A denial of an earlier moment may still be on its way.
        for _ in 0..<10 {
            if listeners[number].shown.isDenied {
                listeners[number].registration.remove()
                let includesAll = listeners[number].shown.includesMetadataChanges
                listeners[number] = listener(make, Shown(includesMetadataChanges: includesAll, users: users?.shown))
            }
            let shown = listeners[number].shown
            guard case .rows(let rows) = expected else {
                if expected == .invalid { return }
                try #require(
                    try await isSeen { shown.isDenied }, "\(what), listener \(number) is not denied: \(shown.rows)")
                expectNil(shown.problem, "\(what), listener \(number)")
                return
            }
            let isShown = try await isSeen { shown.shows(rows) || shown.isDenied }
            if shown.isDenied { continue }
            try #require(
                isShown && shown.problem == nil,
                """
                \(what), listener \(number): \(make(client).definition) shows
                \(difference(shown.rows, rows)), from the cache: \(shown.isFromCache)
                \(shown.problem ?? "")
                """)
            return
        }
        Issue.record("\(what), listener \(number): \(make(client).definition) is denied, and a read is not")
    }
}

/// A server whose directory is replaced by earlier states of it.
private final class RestoredServer {
    let port: Int
    private let directory: String
    private var process: ServerProcess
    /// Copies of the directory; the first one is empty.
    private var states: [String] = []

    init(_ directory: String) throws {
        self.directory = directory
        process = try ServerProcess(data: directory)
        port = process.port
    }

    func stop() -> Int32 { process.stop() }

    /// Ends the server, keeps its state or goes back to an earlier one, and starts it again.
    func restart(_ random: inout SeededGenerator) throws {
        expectEqual(process.stop(), 0)
        let files = FileManager.default
        if random.oneIn(2) {
            states.append("\(directory)-\(states.count)")
            try files.copyItem(atPath: directory, toPath: states[states.count - 1])
        } else {
            try files.removeItem(atPath: directory)
            let state = random.below(states.count + 1)
            if state > 0 {
                try files.copyItem(atPath: states[state - 1], toPath: directory)
                // As `hearth restore` does: the history of the directory ends with the state.
                for file in ["TIMELINE", "IDENTITY"] { try files.removeItem(atPath: "\(directory)/\(file)") }
            }
        }
        process = try ServerProcess(data: directory, port: port)
    }
}

/// Users who take turns with one client. Each of them has documents that the rules deny, and grants that change.
private final class RandomUsers {
    /// The user of the client's program. Thread-safe.
    final class Current: Sendable {
        private let name = Mutex("")

        var value: String {
            get { name.withLock { $0 } }
            set { name.withLock { $0 = newValue } }
        }

        /// A JSON Web Token that nobody verifies; nil for nobody.
        var token: String? {
            let name = value
            if name == RandomUsers.nobody { return nil }
            let parts = [#"{"alg":"none"}"#, #"{"user_id":"\#(name)"}"#].map { text in
                Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
                    .replacing("=", with: "")
            }
            return parts.joined(separator: ".") + "."
        }
    }

    /// A batch of a user; each adds its number to a document of the user.
    private struct Batch {
        let user: String
        /// Whether it writes nothing else, and so is never refused.
        let isPlain: Bool
        /// Nil while the program has no answer: then what became of it is not known.
        var isAccepted: Bool?
        /// The message of the error; empty without one.
        var error = ""
        /// Whether the client has ended before.
        var isLeft = false
    }

    static let nobody = "nobody"
    private static let names = ["ada", "bob", nobody]
    private static let grants = ["list", "get", "write"]

    /// Of the documents `c`: `w-NAME` is written by the user NAME alone. The other rules depend on what a document
    /// contains, and on a document of the user.
    static let rules = """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents {
            function user() { return request.auth == null ? 'nobody' : request.auth.uid; }
            function has(grant) {
              return get(/databases/$(database)/documents/grants/$(user())).data[grant];
            }
            match /{path=**}/c/{id} {
              allow list: if resource.data.a == 0 || has('list');
              allow get: if id == 'w-' + user() || has('get') || resource.data.b == 1;
              allow write: if id == 'w-' + user() || !id.matches('w-.*') && (
                has('write')
                || request.method != 'delete' && request.resource.data.get('a', 0) != 2
                  && (resource == null || resource.data.get('b', 0) != 0));
            }
          }
        }
        """

    let user = Current()
    let shown = ShownUsers(names[0])
    private let batches = Mutex<[Batch]>([])
    private var readers: [String: Firestore] = [:]

    /// Writes the grants with a client that may do everything.
    func begin(_ admin: Firestore, _ host: String) async throws {
        user.value = Self.names[0]
        for name in Self.names {
            let own = Current()
            own.value = name
            let reader = TestFirestore.make(host: host, project: "p")
            reader.setToken { own.token }
            readers[name] = reader
            try await admin.document("grants/\(name)").setData(["list": true, "get": true, "write": true])
        }
    }

    func finish() async throws { for reader in readers.values { try await reader.terminate() } }

    /// Another client of the present user.
    var reader: Firestore? { readers[user.value] }

    func shuffled(_ random: inout SeededGenerator) -> [String] { Self.names.shuffled(using: &random) }

    func changeGrant(_ random: inout SeededGenerator, _ admin: Firestore) async throws {
        let name = random.pick(Self.names)
        try await admin.document("grants/\(name)").updateData([random.pick(Self.grants): !random.oneIn(3)])
    }

    // MARK: The client

    /// The program of a client has another user from now on.
    func begin(becoming name: String, _ client: Firestore) throws {
        _ = try client.engine()
        shown.add(name)
        user.value = name
        client.userDidChange()
    }

    /// The same; the client knows it at the end.
    func become(_ name: String, _ client: Firestore) async throws {
        try begin(becoming: name, client)
        let engine = try client.engine()
        let stored = name == Self.nobody ? "" : name
        let isKnown = try await isSeen {
            let isKnown = Atomic(false)
            engine.queue.sync {
                isKnown.store(engine.store.isUserKnown && engine.store.user == stored, ordering: .relaxed)
            }
            return isKnown.load(ordering: .relaxed)
        }
        try #require(isKnown, "the client is not of \(name)")
        // What it has shown to the user before has been delivered.
        client.settings.dispatchQueue.sync {}
        shown.become(name)
    }

    func commit(_ batch: WriteBatch, isPlain: Bool, _ client: Firestore) {
        let name = user.value
        let number = batches.withLock { batches in
            batches.append(Batch(user: name, isPlain: isPlain))
            return batches.count - 1
        }
        batch.setData(
            ["user": name, "batches": FieldValue.arrayUnion([number]), "count": FieldValue.increment(Int64(1))],
            forDocument: client.document("c/w-\(name)"), merge: true)
        batch.commit { error in
            let isLeft = (error as NSError?)?.code == FirestoreErrorCode.cancelled.rawValue
            self.batches.withLock { batches in
                batches[number].isLeft = isLeft
                if !isLeft { batches[number].isAccepted = error == nil }
                batches[number].error = error.map { "\($0.localizedDescription)" } ?? ""
            }
            if isPlain, !isLeft { expectNil(error, "batch \(number) of \(name)") }
        }
    }

    // MARK: Checks

    private func numbers(_ name: String, _ client: Firestore, _ source: FirestoreSource) async throws -> [Int] {
        let documents = try await client.collection("c").getDocuments(source: source).documents
        return documents.first { $0.documentID == "w-\(name)" }?.get("batches") as? [Int] ?? []
    }

    /// The user sees their pending batches.
    func checkPending(_ client: Firestore, _ what: String) async throws {
        let name = user.value
        let seen = try await numbers(name, client, .cache)
        // What has been settled has been reported.
        try client.engine().queue.sync {}
        client.settings.dispatchQueue.sync {}
        let pending = batches.withLock { batches in
            batches.indices.filter {
                batches[$0].user == name && !batches[$0].isLeft && batches[$0].isAccepted == nil
            }
        }
        expectEqual(Set(pending).subtracting(seen), [], "\(what): \(name) sees their pending batches")
    }

    /// Every accepted batch is in the database once and in order, and no refused one. Nothing is pending any more.
    ///
    /// - Parameter isOrdered: whether a client that starts knows what the one before has sent.
    func check(_ admin: Firestore, isOrdered: Bool, _ what: String) async throws {
        for name in Self.names {
            let numbers = try await numbers(name, admin, .server)
            let document = try await admin.document("c/w-\(name)").getDocument(source: .server)
            expect(!isOrdered || numbers == numbers.sorted(), "\(what): the batches of \(name)")
            expect(document.get("count") as? Int ?? 0 == numbers.count, "\(what): the batches of \(name)")
            let all = batches.withLock { Array($0.enumerated()).filter { $0.element.user == name } }
            for (number, batch) in all {
                guard let isAccepted = batch.isAccepted else { continue }
                expectEqual(numbers.contains(number), isAccepted, "\(what): batch \(number) of \(name) \(batch.error)")
            }
        }
    }
}
