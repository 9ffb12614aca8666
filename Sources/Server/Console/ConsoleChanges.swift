// The recent changes of documents, for the console: each with the document before and after it.
//
// The store collects changes while someone subscribes. So nothing is collected before the view is opened for the first
// time, and nothing any more ten minutes after it was looked at for the last time.

internal import Basics
internal import DocumentJSON
internal import DocumentModel
internal import DocumentStore
internal import FirestoreJSON
internal import Synchronization

/// Changes of all stores since the view was opened. Thread-safe.
final class ConsoleChanges: Sendable {
    private static let shownMax = 200

    private let stores: [StoreChanges]

    init(_ stores: [ServedStore]) { self.stores = stores.map(StoreChanges.init) }

    /// To be called every few seconds: takes what the stores have collected.
    func tick() {
        for store in stores { store.tick() }
    }

    /// The changes above a version, the newest first.
    ///
    /// - Parameter path: of which paths begin with it; empty for all.
    func json(after version: UInt64, path: String) -> JSONValue {
        let known = stores.map { $0.changes(after: version, path: Array(path.utf8), countMax: Self.shownMax) }
        let since = known.reduce(0) { max($0, $1.since) }
        let shown = known.flatMap(\.changes).sorted { $0.version > $1.version }.prefix(Self.shownMax)
        return .object([
            "sinceMicroseconds": .integer(Int64(clamping: since)),
            "changesMax": .integer(Int64(StoreChanges.changesMax)),
            "changes": .array(shown.map(\.json)),
        ])
    }
}

/// Changes of one store, within bounds. Thread-safe.
private final class StoreChanges: Sendable {
    static let changesMax = 1_000
    private static let bytesMax = 8 << 20
    /// A larger document is kept by its name alone.
    private static let documentBytesMax = 64 << 10
    private static let idleSeconds: UInt64 = 600

    private struct Change {
        let version: UInt64
        let database: UInt32
        let path: [UInt8]
        /// Nil without a document.
        let before: [UInt8]?
        let after: [UInt8]?
        let isCut: Bool

        var byteCount: Int { path.count + (before?.count ?? 0) + (after?.count ?? 0) + 128 }
    }

    private struct State {
        var subscription: ChangeSubscription?
        /// The store of the subscription.
        var store: DocumentStore?
        var position: UInt64 = 0
        /// From when on changes are known.
        var since: UInt64 = 0
        var askedAt: UInt64 = 0
        var changes: [Change] = []
        var byteCount = 0
    }

    private let served: ServedStore
    private let state = Mutex(State())
    private let document = Schema.shared.message("google.firestore.v1.Document")

    init(_ served: ServedStore) { self.served = served }

    func tick() {
        let now = SystemClock.monotonicMilliseconds()
        state.withLock { state in
            guard state.subscription != nil else { return }
            // A store that was opened again has other changes.
            if now > state.askedAt + Self.idleSeconds * 1_000 || state.store !== served.store {
                state = State()
            } else {
                take(&state)
            }
        }
    }

    /// The changes above a version, the newest first, and from when on they are known.
    ///
    /// - Parameter path: of which paths begin with it; empty for all.
    func changes(
        after version: UInt64, path: [UInt8], countMax: Int
    ) -> (since: UInt64, changes: [(version: UInt64, json: JSONValue)]) {
        let store = served.store
        let (since, changes) = state.withLock { state in
            if state.store !== store { state = State() }
            state.askedAt = SystemClock.monotonicMilliseconds()
            if state.subscription == nil {
                state.store = store
                state.subscription = store.subscribeToChanges {}
                state.position = store.currentReadTime
                state.since = state.position
            }
            take(&state)
            return (state.since, state.changes)
        }
        let shown = changes.reversed().filter { $0.version > version && $0.path.starts(with: path) }.prefix(countMax)
        return (since, shown.map { ($0.version, json(of: $0, store.databaseName(of: $0.database))) })
    }

    private func take(_ state: inout State) {
        guard let readTime = state.store?.currentReadTime else { return }
        guard let subscription = state.subscription, readTime > state.position else { return }
        guard let batches = subscription.changes(after: state.position, through: readTime) else {
            // Some are lost: what is shown begins here.
            state.changes = []
            state.byteCount = 0
            state.since = readTime
            state.position = readTime
            return
        }
        for batch in batches {
            batch.forEachChange(after: state.position, through: readTime) { change in
                Self.add(change, to: &state)
            }
        }
        state.position = readTime
    }

    private static func add(_ change: StoreChange, to state: inout State) {
        let isCut = change.before.byteCount > documentBytesMax || change.after.byteCount > documentBytesMax
        let change = Change(
            version: change.version, database: change.database, path: [UInt8](copying: change.path),
            before: change.existedBefore ? (isCut ? [] : [UInt8](copying: change.before)) : nil,
            after: change.existsAfter ? (isCut ? [] : [UInt8](copying: change.after)) : nil, isCut: isCut)
        state.changes.append(change)
        state.byteCount += change.byteCount
        var dropped = 0
        while state.changes.count - dropped > changesMax || state.byteCount > bytesMax {
            state.byteCount -= state.changes[dropped].byteCount
            state.since = state.changes[dropped].version
            dropped += 1
        }
        state.changes.removeFirst(dropped)
    }

    private func json(of change: Change, _ database: DatabaseName?) -> JSONValue {
        .object([
            "version": .string("\(change.version)"), "database": .string(database.map { "\($0)" } ?? ""),
            "path": .string(String(decoding: change.path, as: UTF8.self)),
            "before": change.before.map { json(ofFields: $0) } ?? .null,
            "after": change.after.map { json(ofFields: $0) } ?? .null, "isCut": .boolean(change.isCut),
        ])
    }

    /// The fields of a document in the JSON of REST.
    private func json(ofFields fields: [UInt8]) -> JSONValue {
        var text = ByteBuffer(capacity: 2 * fields.count + 64)
        do {
            try JSONMessageWriter().append(fields.byteSpan, document, to: &text)
            return try JSONValue.read(text.copyBytes())["fields"] ?? .object([:])
        } catch {
            return .null
        }
    }
}
