// When the changes of a client's store are on the disk.

internal import Basics
internal import Storage
internal import StorageEngines

/// Makes staged commits durable, many at a time, without blocking the store.
///
///     staged ─► commitGroup ─► (engine's thread: fdatasync) ─► deliver ─► waiters, next group
///
/// Belongs to the thread or queue of its store.
final class LocalDurability {
    private let isInMemory: Bool
    private let deliver: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let arrival = Arrival()
    private var isSyncing = false
    private var durable: UInt64 = 0
    private var waiters: [(version: UInt64, body: @Sendable () -> Void)] = []

    /// What the engine's thread hands over.
    private final class Arrival: Sendable {
        let store = Monitor<UncheckedReference>(UncheckedReference())
    }

    /// The store's durability, which only the store's thread uses.
    private struct UncheckedReference: @unchecked Sendable {
        weak var durability: LocalDurability?
        var writer: EngineWriter?
    }

    init(isInMemory: Bool, deliver: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        self.isInMemory = isInMemory
        self.deliver = deliver
    }

    /// A commit was staged.
    func staged(_ writer: EngineWriter) throws(StorageError) {
        if isInMemory {
            try writer.commitGroup()
            return
        }
        try sync(writer)
    }

    private func sync(_ writer: EngineWriter) throws(StorageError) {
        // A full group waits for the one before, which bounds what is staged.
        if isSyncing && !writer.isGroupFull || !writer.hasStaged { return }
        isSyncing = true
        arrival.store.withLock { $0 = UncheckedReference(durability: self, writer: writer) }
        let (arrival, deliver) = (arrival, deliver)
        try writer.commitGroup { result in
            deliver {
                let reference = arrival.store.withLock { $0 }
                guard let durability = reference.durability, let writer = reference.writer else { return }
                durability.synced(result, writer)
            }
        }
    }

    private func synced(_ result: Result<CommitVersion, StorageError>, _ writer: EngineWriter) {
        isSyncing = false
        // After a failure the next commit of the store reports it.
        guard case .success(let version) = result else { return }
        durable = max(durable, version.microseconds)
        let ready = waiters.filter { $0.version <= durable }
        waiters.removeAll { $0.version <= durable }
        for waiter in ready { waiter.body() }
        try? sync(writer)
    }

    func whenDurable(_ writer: EngineWriter, _ body: @escaping @Sendable () -> Void) {
        let version = writer.lastVersion.microseconds
        if isInMemory || version <= durable { return body() }
        waiters.append((version, body))
    }

    /// The last commits before the store is closed; waits for the disk.
    func finish(_ writer: EngineWriter) {
        arrival.store.withLock { $0 = UncheckedReference() }
        writer.waitForGroup()
        _ = try? writer.commitGroup()
        let ready = waiters
        waiters = []
        for waiter in ready { waiter.body() }
    }
}
