// A store in a temporary directory, with a clock that the test holds, and words for what tests do with it.

import Basics
import DocumentModel
import Foundation
import MemoryEngine
import Storage
import StorageEngines
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore
@testable import QueryEngine

/// A clock that only the test advances.
final class SteppedClock: StoreClock {
    private let wall = Atomic<UInt64>(1_700_000_000_000_000)
    private let elapsed = Atomic<UInt64>(1_000_000)

    var nowMicroseconds: UInt64 { wall.load(ordering: .sequentiallyConsistent) }
    var elapsedMilliseconds: UInt64 { elapsed.load(ordering: .sequentiallyConsistent) }

    /// Both clocks go forward.
    func advance(milliseconds: UInt64) {
        wall.add(milliseconds * 1_000, ordering: .sequentiallyConsistent)
        elapsed.add(milliseconds, ordering: .sequentiallyConsistent)
    }

    /// The wall clock is set forward; elapsed time is not.
    func stepForward(milliseconds: UInt64) {
        wall.add(milliseconds * 1_000, ordering: .sequentiallyConsistent)
    }

    /// The wall clock is set back; elapsed time is not.
    func stepBack(milliseconds: UInt64) {
        wall.subtract(milliseconds * 1_000, ordering: .sequentiallyConsistent)
    }
}

/// One write, as a test says it.
enum StepWrite {
    case set(String, MapValue, Precondition? = nil)
    case merge(String, MapValue, mask: [String], Precondition? = nil)
    case increment(String, field: String, by: Int64)
    case delete(String, Precondition? = nil)
    case verify(String, Precondition)
}

/// A document as a test sees it.
struct SeenDocument: Equatable {
    var fields: MapValue
    var createMicroseconds: UInt64
    var updateMicroseconds: UInt64
}

/// The storage engine that the tests of the store run over. `Tools/test` runs them once over each.
enum EngineUnderTest: String {
    case embedded, memory
    /// The one in memory, in simulations (`SimulationTrait`).
    case simulated

    /// `HEARTH_TEST_ENGINE`, or the embedded engine.
    static let current: EngineUnderTest = {
        guard let name = ProcessInfo.processInfo.environment["HEARTH_TEST_ENGINE"] else { return .embedded }
        guard let engine = EngineUnderTest(rawValue: name) else {
            fatalError("HEARTH_TEST_ENGINE is embedded, memory or simulated")
        }
        return engine
    }()

    /// Whether the engine has files, and threads that write them; some tests damage these or make them fail.
    static var hasFiles: Bool { current == .embedded }
}

extension Trait where Self == ConditionTrait {
    /// For tests of what only the embedded engine has.
    static var needsFiles: Self { .enabled(if: EngineUnderTest.hasFiles, "The engine in memory has no files.") }
}

final class StoreHarness: Sendable {
    let directory: TemporaryDirectory
    let configuration: StoreConfiguration
    let store: DocumentStore
    let clock: SteppedClock
    let database: DatabaseName

    /// - Parameters:
    ///   - directory: an existing data directory, or nil for a new one.
    ///   - configure: changes the settings, which suit small tests.
    init(
        in directory: TemporaryDirectory? = nil, clock: SteppedClock = SteppedClock(), database: String = "(default)",
        configure: (inout StoreConfiguration) -> Void = { _ in }
    ) throws {
        self.directory = directory ?? TemporaryDirectory("hearth-store")
        self.clock = clock
        self.database = try DatabaseName(project: "p", database: database)
        var configuration = StoreConfiguration(directory: self.directory.path(of: "data"))
        configuration.clock = clock
        // Many are open at once, and the address space of a process ends at 128 TiB.
        configuration.engine.runBytesMax = 4 << 30
        configuration.engine.memtableBytesMax = 1 << 20
        // What is allocated in advance takes longer than most tests.
        configuration.engine.logSegmentBytes = 256 << 10
        configuration.engine.diskReserveBytes = 256 << 10
        configuration.engine.idleCheckpointMicroseconds = 0
        switch EngineUnderTest.current {
        case .embedded: break
        case .memory: configuration.volume = MemoryVolume(replaysRecords: true)
        case .simulated:
            configuration.volume = MemoryVolume(replaysRecords: true, syncsInBackground: true)
            configuration.inlineSyncBytesMax = 0
        }
        configure(&configuration)
        self.configuration = configuration
        store = try DocumentStore.open(configuration)
    }

    // MARK: Lifetime

    /// Checks the contents, closes, and checks the directory.
    func finish(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let open = try StoreCheck.run(store)
        expectEqual(open.problems, [], sourceLocation: sourceLocation)
        let failure = store.close()
        expectNil(failure, sourceLocation: sourceLocation)
        let closed = try StoreCheck.run(configuration)
        expectEqual(closed.problems, [], sourceLocation: sourceLocation)
        expectEqual(closed.documents, open.documents, sourceLocation: sourceLocation)
    }

    /// Closes this store and opens its directory again.
    func reopened() throws -> StoreHarness {
        store.close()
        let configuration = configuration
        return try StoreHarness(in: directory, clock: clock, database: database.database) { $0 = configuration }
    }

    /// Opens a copy of the directory as it is now: what a crash at this moment would leave. To be called while
    /// nothing is being committed.
    func crashed(configure: (inout StoreConfiguration) -> Void = { _ in }) throws -> StoreHarness {
        let volume = configuration.volume?.copy()
        let copy = volume == nil ? try copyOfDirectory() : nil
        let configuration = configuration
        return try StoreHarness(in: copy, clock: clock, database: database.database) {
            let place = $0.directory
            $0 = configuration
            $0.directory = place
            $0.volume = volume
            configure(&$0)
        }
    }

    /// The store after a crash of this one, which is closed.
    func restarted() throws -> StoreHarness {
        let after = try crashed()
        store.close()
        return after
    }

    /// A copy of the directory in which keys were changed without the knowledge of a store. The store is closed before.
    func copy(changing change: (inout MutationBatch) -> Void) throws -> TemporaryDirectory {
        let copy = try copyOfDirectory()
        let engine = try StorageEngine.open(
            directory: copy.path(of: "data"), options: DocumentStore.engineOptions(configuration)
        ) { _, _, _, _ in }
        let writer = try engine.makeWriter()
        var batch = MutationBatch()
        change(&batch)
        let record = [LogRecord.clockKind]
        try writer.stage(
            version: CommitVersion(microseconds: writer.lastVersion.microseconds + 1), record: record.byteSpan,
            mutations: batch)
        try writer.commitGroup()
        try engine.checkpointNow()
        writer.finishReading()
        try engine.close()
        return copy
    }

    /// What a check finds in such a copy.
    func check(changing change: (inout MutationBatch) -> Void) throws -> StoreCheck.Report {
        let copy = try copy(changing: change)
        var configuration = configuration
        configuration.directory = copy.path(of: "data")
        return try withExtendedLifetime(copy) { try StoreCheck.run(configuration) }
    }

    private func copyOfDirectory() throws -> TemporaryDirectory {
        let copy = TemporaryDirectory("hearth-crash")
        try copyOpenDirectory(configuration.directory, to: copy.path(of: "data"))
        return copy
    }

    // MARK: Writing

    func name(_ path: String) -> String { "\(database.documentsRoot)/\(path)" }

    /// - Parameter rules: by default all that a store may hold, more than requests may write.
    func list(
        _ writes: [StepWrite], in other: DatabaseName? = nil, rules: NameRules = .stored
    ) throws(RequestError) -> WriteList {
        let database = other ?? self.database
        var list = WriteList(database: database, rules: rules)
        for write in writes {
            switch write {
            case .set(let path, let fields, let precondition):
                let name = Array("\(database.documentsRoot)/\(path)".utf8)
                let bytes = fields.documentBytes
                try list.update(name.byteSpan, fields: bytes.byteSpan, precondition: precondition)
            case .merge(let path, let fields, let mask, let precondition):
                let name = Array("\(database.documentsRoot)/\(path)".utf8)
                let bytes = fields.documentBytes
                var paths: [FieldPath] = []
                for path in mask { paths.append(try FieldPath(path)) }
                try list.update(
                    name.byteSpan, fields: bytes.byteSpan, mask: DocumentMask(paths: paths), precondition: precondition)
            case .increment(let path, let field, let amount):
                let name = Array("\(database.documentsRoot)/\(path)".utf8)
                let nothing: [UInt8] = []
                try list.update(
                    name.byteSpan, fields: nothing.byteSpan, mask: DocumentMask(paths: []),
                    transforms: [FieldTransform(path: try FieldPath(field), operation: .increment(.integer(amount)))])
            case .delete(let path, let precondition):
                let name = Array("\(database.documentsRoot)/\(path)".utf8)
                try list.delete(name.byteSpan, precondition: precondition)
            case .verify(let path, let precondition):
                let name = Array("\(database.documentsRoot)/\(path)".utf8)
                try list.verify(name.byteSpan, precondition: precondition)
            }
        }
        return list
    }

    /// Makes a commit that must succeed.
    func commit(
        _ writes: [StepWrite], transaction: TransactionIdentifier? = nil, identifier: RequestIdentifier? = nil
    ) async throws {
        let result = try await self.result(committing: writes, transaction: transaction, identifier: identifier)
        expectEqual(result.writeResults.count, writes.count)
    }

    func result(
        committing writes: [StepWrite], transaction: TransactionIdentifier? = nil,
        identifier: RequestIdentifier? = nil
    ) async throws -> CommitResult {
        try await outcome(
            CommitRequest(writes: try list(writes), transaction: transaction, identifier: identifier)
        ).get()
    }

    func outcome(_ request: CommitRequest, maySync: Bool = false) async -> Result<CommitResult, RequestError> {
        await withCheckedContinuation { continuation in
            store.commit(request, maySync: maySync) { continuation.resume(returning: $0) }
        }
    }

    /// The status that a commit fails with, or nil when it succeeds.
    func failure(_ writes: [StepWrite], transaction: TransactionIdentifier? = nil) async throws -> RequestError? {
        switch await outcome(CommitRequest(writes: try list(writes), transaction: transaction)) {
        case .success: nil
        case .failure(let error): error
        }
    }

    func batch(_ writes: [StepWrite], identifier: RequestIdentifier? = nil) async throws -> BatchWriteResult {
        let request = CommitRequest(writes: try list(writes), identifier: identifier)
        return try await withCheckedContinuation { continuation in
            store.batchWrite(request) { continuation.resume(returning: $0) }
        }.get()
    }

    func begin(_ options: TransactionOptions = .readWrite) async throws -> TransactionIdentifier {
        let database = database
        return try await withCheckedContinuation { continuation in
            store.beginTransaction(in: database, options: options) { continuation.resume(returning: $0) }
        }.get()
    }

    func retry(_ transaction: TransactionIdentifier) async throws -> TransactionIdentifier {
        try await begin(.readWrite(retryTransaction: transaction.bytes, concurrency: .unspecified))
    }

    // MARK: Reading

    /// A read point; waits if commits at or below its time are not visible yet.
    func readPoint(_ reader: StoreReader, _ selector: ReadSelector) throws -> ReadPoint {
        if case .time = selector { try waitUntil("the time is readable") { try !store.mustWait(for: selector) } }
        return try reader.readPoint(selector, in: database)
    }

    func get(_ path: String, _ selector: ReadSelector = .latest) throws -> SeenDocument? {
        let reader = store.makeReader()
        let name = Array(name(path).utf8)
        var seen: SeenDocument?
        try reader.withDocument(name.byteSpan, at: try readPoint(reader, selector)) {
            (document) throws(RequestError) in
            guard let document else { return }
            guard let fields = try? MapValue(documentBytes: document.fields) else {
                throw RequestError(.dataLoss, "unreadable fields")
            }
            seen = SeenDocument(
                fields: fields, createMicroseconds: document.createMicroseconds,
                updateMicroseconds: document.updateMicroseconds)
        }
        return seen
    }

    func integer(_ path: String, _ field: String = "n", _ selector: ReadSelector = .latest) throws -> Int64? {
        guard case .integer(let number)? = try get(path, selector)?.fields[field] else { return nil }
        return number
    }

    /// The ids of a collection, in the order of a scan.
    func ids(
        _ collection: String, _ range: DocumentIDRange = .all, direction: SortDirection = .ascending, limit: Int = .max,
        _ selector: ReadSelector = .latest, matching filter: DocumentFilter? = nil
    ) throws -> [String] {
        let reader = store.makeReader()
        let source = try StoreSource(reader, at: try readPoint(reader, selector), filter: filter)
        var ids: [String] = []
        var locked: [[UInt8]] = []
        try source.scan(Array(collection.utf8), ids: range, direction: direction) { row in
            if source.locksDocuments, filter?(row.path, row.fields) ?? true {
                locked.append([UInt8](copying: row.path))
            }
            ids.append(String(repairingUTF8: RelativePath.lastSegment(row.path)))
            return ids.count < limit ? .more : .full
        }
        source.lock(locked)
        return ids
    }
}

/// Admits so many pieces of housekeeping of one kind, and all others.
func atMost(_ count: Int, _ limited: HousekeepingTask) -> @Sendable (HousekeepingTask) -> Bool {
    TaskBudget(count, limited).admits
}

/// How many times a store may still do a task. Thread-safe.
final class TaskBudget: Sendable {
    private let limited: HousekeepingTask
    private let left: Mutex<Int>

    init(_ count: Int, _ limited: HousekeepingTask) {
        self.limited = limited
        left = Mutex(count)
    }

    /// For `StoreConfiguration.admitsHousekeeping`.
    var admits: @Sendable (HousekeepingTask) -> Bool {
        { [self] task in
            if task != limited { return true }
            return left.withLock { left in
                left -= 1
                return left >= 0
            }
        }
    }

    /// Whether the store has asked for the task as often as it may do it.
    var isUsed: Bool { left.withLock { $0 < 1 } }

    func allowOnce() { left.withLock { $0 = 1 } }
}

/// `a: 1` and so on.
func fields(_ number: Int64, _ name: String = "n") -> MapValue { MapValue([(name, .integer(number))]) }
