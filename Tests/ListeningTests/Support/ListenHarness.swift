// A store with a hub, driven by the test: no sockets, and no thread but the store's own.

import Basics
import DocumentModel
import DocumentStore
import EngineTestSupport
import Foundation
import Listening
import MemoryEngine
import Synchronization
import TestSupport
import Testing

@testable import QueryEngine

/// A clock that the test steps.
final class TestClock: StoreClock {
    private let wall = Atomic<UInt64>(1_700_000_000_000_000)

    var nowMicroseconds: UInt64 { wall.load(ordering: .sequentiallyConsistent) }
    var elapsedMilliseconds: UInt64 { nowMicroseconds / 1_000 }

    func advance(milliseconds: UInt64) { wall.add(milliseconds * 1_000, ordering: .sequentiallyConsistent) }
}

/// A store and one hub. The hub takes changes when the test calls for it.
final class ListenHarness {
    let database: DatabaseName
    let clock: TestClock
    private(set) var configuration: StoreConfiguration
    private(set) var directory: TemporaryDirectory
    private(set) var store: DocumentStore
    private(set) var hub: ListenHub
    private(set) var reader: StoreReader
    let limits: ListenLimits
    /// Wake-ups of the hub so far.
    let wakeUps: WakeUps
    /// The commit time of the last commit.
    var acknowledged: UInt64 { commitTimes.last ?? 0 }
    /// Of all commits of ``commit(_:)``, in microseconds.
    private(set) var commitTimes: [UInt64] = []

    /// Whether the storage engine under test has files.
    static let hasFiles =
        (ProcessInfo.processInfo.environment["HEARTH_TEST_ENGINE"] ?? "embedded") == "embedded"
        && RandomColdKeys.ofEnvironment() == nil

    final class WakeUps: Sendable {
        private let number = Atomic<Int>(0)
        func add() { number.add(1, ordering: .sequentiallyConsistent) }
        var count: Int { number.load(ordering: .sequentiallyConsistent) }
    }

    init(
        limits: ListenLimits = ListenLimits(), configure: (inout StoreConfiguration) -> Void = { _ in }
    ) throws {
        self.limits = limits
        directory = TemporaryDirectory("hearth-listen")
        database = try DatabaseName(project: "p", database: "(default)")
        clock = TestClock()
        var configuration = StoreConfiguration(directory: directory.path(of: "data"))
        configuration.clock = clock
        configuration.engine.runBytesMax = 4 << 30
        configuration.engine.memtableBytesMax = 1 << 20
        configuration.engine.logSegmentBytes = 256 << 10
        // `Tools/test` runs the tests over both storage engines.
        if !Self.hasFiles {
            let isSimulated = SimulationTrait.isEnabled
            configuration.volume = MemoryVolume(replaysRecords: true, syncsInBackground: isSimulated)
            if isSimulated { configuration.inlineSyncBytesMax = 0 }
            // Reads that must wait now and again.
            configuration.engine.coldKeys = RandomColdKeys.ofEnvironment()
        }
        configure(&configuration)
        self.configuration = configuration
        store = try DocumentStore.open(configuration)
        reader = store.makeReader()
        let wakeUps = WakeUps()
        self.wakeUps = wakeUps
        hub = ListenHub(store, limits: limits, reader: store.makeReader()) { wakeUps.add() }
    }

    deinit { store.close() }

    /// Writes a backup beside the data.
    func backUp() throws { try store.backup(to: directory.path(of: "backup")) }

    /// Continues with the backup instead of the data. Sessions must be closed before.
    func restoreBackup() throws {
        store.close()
        configuration.directory = directory.path(of: "backup")
        // Read times may be ahead of a clock that is only stepped.
        clock.advance(milliseconds: 1)
        try reopen()
    }

    /// Closes the store and opens it again, with a new hub. Sessions must be closed before.
    func reopen() throws {
        store.close()
        try open()
    }

    /// Opens what `kill -9` would leave now, with a new hub. Sessions must be closed before.
    func crash() throws {
        let copy = TemporaryDirectory("hearth-listen")
        configuration.volume = configuration.volume?.copy()
        if configuration.volume == nil { try copyOpenDirectory(configuration.directory, to: copy.path(of: "data")) }
        store.close()
        directory = copy
        configuration.directory = copy.path(of: "data")
        try open()
    }

    private func open() throws {
        // A restart takes time. Read times may be ahead of the clock by some microseconds.
        clock.advance(milliseconds: 1)
        store = try DocumentStore.open(configuration)
        reader = store.makeReader()
        hub = ListenHub(store, limits: limits, reader: store.makeReader()) { [wakeUps] in wakeUps.add() }
    }

    // MARK: Writing

    func name(_ path: String) -> String { "\(database.documentsRoot)/\(path)" }

    /// Commits writes: fields, or nil to delete.
    /// - Returns: the commit time in microseconds.
    func commit(_ writes: [(path: String, fields: [String: Value]?)]) throws -> UInt64 {
        var list = WriteList(database: database)
        for (path, fields) in writes {
            let name = Array(name(path).utf8)
            if let fields {
                let bytes = Self.encode(fields)
                try list.update(name.byteSpan, fields: bytes.byteSpan)
            } else {
                try list.delete(name.byteSpan)
            }
        }
        let done = Monitor<Result<CommitResult, RequestError>?>(nil)
        store.commit(CommitRequest(writes: list)) { result in done.update { $0 = result } }
        clock.advance(milliseconds: 1)
        commitTimes.append(try done.wait { $0 }.get().commitMicroseconds)
        return acknowledged
    }

    func set(_ path: String, _ fields: [String: Value]) throws { _ = try commit([(path, fields)]) }

    func delete(_ path: String) throws { _ = try commit([(path, nil)]) }

    /// Begins the deletion of the database.
    func deleteDatabase() throws {
        let done = Monitor<Result<Void, RequestError>?>(nil)
        store.deleteDatabase(database, check: { _ in }) { result in done.update { $0 = result } }
        clock.advance(milliseconds: 1)
        try done.wait { $0 }.get()
    }

    func waitUntilDatabaseIsRemoved() throws {
        try waitUntil("the documents of the database are removed") {
            clock.advance(milliseconds: 1_000)
            store.noticeTime()
            return store.describeDatabase(database)?.settings?.state == .deleted
        }
    }

    private static func encode(_ fields: [String: Value]) -> [UInt8] {
        var writer = ByteBuffer()
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            writer.withLengthPrefix(field: 2) { entry in
                entry.appendField(1, string: name)
                entry.withLengthPrefix(field: 2) { value.encode(into: &$0) }
            }
        }
        return writer.copyBytes()
    }

    // MARK: Reading

    /// The results of a target at a time: names below the documents root with their update times.
    func results(of target: Subject, at microseconds: UInt64) throws -> [String: UInt64] {
        let time = TimestampValue(microseconds: Int64(microseconds))
        let point = try reader.readPoint(.time(time), in: database)
        var results: [String: UInt64] = [:]
        switch target {
        case .documents(let paths):
            for path in paths {
                let name = Array(name(path).utf8)
                try reader.withDocument(name.byteSpan, at: point) { found in
                    if let found { results[path] = found.updateMicroseconds }
                }
            }
        case .query(let query):
            let root = Array(database.documentsRoot.utf8)
            var run = QueryExecution(try QueryPlan(query, parent: root.byteSpan))
            while true {
                let source = try reader.source(at: point)
                let progress = try run.next(from: source) { row in
                    results[String(repairingUTF8: row.path)] = row.updateMicroseconds
                    return .more
                }
                if case .finished = progress { break }
            }
        }
        return results
    }
}
