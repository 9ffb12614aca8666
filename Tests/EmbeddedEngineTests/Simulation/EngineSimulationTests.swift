// The engine with its threads and files in a simulation: the seed orders commits, reads, checkpoints and merges, makes
// writes and syncs fail, and cuts the power.

import Basics
import EngineTestSupport
import Glibc
import Storage
import StorageEngines
import TestSupport
import Testing

@testable import EmbeddedEngine
@testable import FileSystem

/// One engine, what was committed to it, and what it did to its files. The threads of a simulation use it, one at a
/// time.
private final class EngineModel: @unchecked Sendable {
    private let simulation: Simulation
    private let directory = TemporaryDirectory("simulated")
    private let recorder: DiskRecorder
    private let disk: Failures
    private var recording = Recording()
    private var store: Store?
    private var model = Model()
    /// Versions that were begun, and acknowledged.
    private var lastBegun: UInt64 = 0
    private var acknowledged: UInt64 = 0
    /// A group could not be written.
    private var hasFailed = false
    private(set) var problem: String?

    /// When writes and syncs fail.
    private final class Failures: @unchecked Sendable {
        let oneIn: Int?
        var areEnabled = false

        init(oneIn: Int?) { self.oneIn = oneIn }
    }

    init(_ simulation: Simulation) throws {
        self.simulation = simulation
        let disk = Failures(oneIn: simulation.random.pick([nil, 200, 20]))
        self.disk = disk
        recording.start = SimulatedDisk(loading: directory.path)
        recorder = DiskRecorder(directory.path) { change in
            switch change {
            case .sync, .write: break
            default: return 0
            }
            yieldPoint("file")
            guard disk.areEnabled, let oneIn = disk.oneIn else { return 0 }
            return simulation.random.oneIn(oneIn) ? EIO : 0
        }
    }

    func open() throws {
        var options = PowerCut.options
        options.retentionMicroseconds = 30
        options.clock = { [unowned self] in acknowledged }
        let store = try Store(directory.path + "/data", options)
        recording.timelineStart = store.engine.timelineStart.microseconds
        self.store = store
        disk.areEnabled = true
    }

    // MARK: Threads

    /// Commits groups, most of them while the one before is on its way, until one cannot be written.
    func commit() {
        guard let store else { return }
        for _ in 0..<8 {
            do throws(StorageError) {
                for _ in 0...simulation.random.below(2) { try stage(store) }
            } catch {
                // A refusal of one commit. On a disk that works nothing is refused.
                if disk.oneIn == nil { problem = "a commit is refused: \(error)" }
            }
            do throws(StorageError) {
                if store.writer.hasStaged { try seal(store) }
            } catch {
                if disk.oneIn == nil { problem = "a group fails: \(error)" }
                break
            }
        }
        store.writer.waitForGroup()
    }

    private func stage(_ store: Store) throws(StorageError) {
        lastBegun += 1
        let version = lastBegun
        let changes = (0...simulation.random.below(8)).map { _ in
            let name = Bytes("key \(simulation.random.below(12))".utf8) + [0]
            let value = Bytes(repeating: UInt8(version), count: simulation.random.below(600))
            return Change(
                key: simulation.random.oneIn(2) ? [0x10] + name : name, value: simulation.random.oneIn(5) ? nil : value)
        }
        recorder.note(.begin(version: version))
        try store.stage(version, changes)
        model.commit(version, changes)
        recording.commits.append((version, changes))
    }

    private func seal(_ store: Store) throws(StorageError) {
        let last = model.last
        if simulation.random.oneIn(4) {
            do throws(StorageError) {
                _ = try store.writer.commitGroup()
            } catch {
                hasFailed = true
                throw error
            }
            note(last, isDurable: true)
        } else {
            try store.writer.commitGroup { [unowned self] result in
                if case .success = result { note(last, isDurable: true) } else { note(last, isDurable: false) }
            }
        }
    }

    private func note(_ version: UInt64, isDurable: Bool) {
        if isDurable, hasFailed { problem = "the group of \(version) is acknowledged after one that failed" }
        hasFailed = hasFailed || !isDurable
        guard isDurable else { return }
        recorder.note(.acknowledge(version: version))
        acknowledged = version
    }

    /// Compares snapshots with what was committed.
    func read() throws {
        guard let store else { return }
        let reader = try store.engine.makeReader()
        for _ in 0..<4 {
            let lowest = acknowledged
            let snapshot = try reader.snapshot(at: nil)
            let version = snapshot.version.microseconds
            if version < lowest { problem = "a snapshot has \(version), and \(lowest) was acknowledged" }
            let found = try snapshot.entries([], [0xF0])
            if found != model.entries([], [0xF0], at: version, .forward) {
                problem = "a snapshot at \(version) has something else"
            }
        }
    }

    /// Asks for checkpoints and sweeps, which may fail as the disk does.
    func maintain() {
        for _ in 0..<2 {
            SystemThread.sleep(microseconds: UInt32(simulation.random.below(2_000)))
            if simulation.random.oneIn(3) {
                try? store?.engine.sweepHistoryNow()
            } else {
                try? store?.engine.checkpointNow()
            }
        }
    }

    // MARK: The end

    func close() {
        disk.areEnabled = simulation.random.oneIn(2)
        do { try store?.engine.close() } catch { if disk.oneIn == nil { problem = "it does not close: \(error)" } }
        store = nil
    }

    /// Cuts the power somewhere in all of this, and looks what is left.
    func cut() {
        recording.events = recorder.end()
        guard problem == nil else { return }
        var cuts = PowerCuts(seed: simulation.random.next())
        problem = cuts.problem(of: recording, at: [simulation.random.below(recording.events.count + 1)])
    }
}

/// An engine on a full disk, which has to find the space of its log in segments that checkpoints release. The threads
/// of a simulation use it, one at a time.
private final class FullLogModel: @unchecked Sendable {
    private let simulation: Simulation
    private let directory = TemporaryDirectory("simulated")
    private var store: Store?
    private var version: UInt64 = 0
    private var isFull = false
    private(set) var problem: String?

    init(_ simulation: Simulation) { self.simulation = simulation }

    func open() throws {
        var options = EngineOptions.small
        options.diskReserveBytes = simulation.random.pick([0, options.diskReserveBytes])
        options.fault = { [unowned self] in $0 == .allocateSegment && isFull ? ENOSPC : 0 }
        let store = try Store(directory.path + "/data", options)
        self.store = store
        for _ in 0..<3 { try delete(store) }
        isFull = true
    }

    /// A commit whose record fills most of a segment.
    private func delete(_ store: Store) throws(StorageError) {
        version += 1
        let changes = (0..<115).map {
            Change(key: Bytes("\(version) \($0) ".utf8) + Bytes(repeating: 0x61, count: 480), value: nil)
        }
        try store.stage(version, changes, mayUseReserve: true)
        try store.writer.commitGroup()
    }

    func delete() {
        guard let store else { return }
        for _ in 0..<8 where problem == nil {
            do throws(StorageError) { try delete(store) } catch { problem = "delete \(version) is refused: \(error)" }
        }
    }

    func checkpoint() {
        for _ in 0..<8 {
            SystemThread.sleep(microseconds: UInt32(simulation.random.below(1_000)))
            do throws(StorageError) { try store?.engine.checkpointNow() } catch { problem = "no checkpoint: \(error)" }
        }
    }

    func close() {
        do { try store?.engine.close() } catch { problem = "it does not close: \(error)" }
        store = nil
    }
}

@Suite(.timeLimit(.minutes(600)), .simulated)
struct EngineSimulationTests {
    @Test
    func `On a full disk deletes are accepted, whenever checkpoints begin and end`() {
        let problem = SimulatedSeeds.problem(of: "full log", count: 20, soak: 5_000) { simulation in
            let model = FullLogModel(simulation)
            try model.open()
            try simulation.concurrently([model.delete, model.checkpoint])
            model.close()
            return model.problem
        }
        expectNil(problem)
    }

    @Test
    func `Commits, reads, checkpoints and merges in any order, failed syncs and a power cut`() {
        let problem = SimulatedSeeds.problem(of: "engine", count: 20, soak: 50_000) { simulation in
            let model = try EngineModel(simulation)
            try model.open()
            try simulation.concurrently([model.commit, model.read, model.read, model.maintain])
            model.close()
            model.cut()
            return model.problem
        }
        expectNil(problem)
    }
}
