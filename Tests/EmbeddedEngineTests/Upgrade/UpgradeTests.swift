// Upgrades of directories from a planted format: kills, power cuts and full disks at each step, and the way back.

import EngineTestSupport
import Glibc
import Storage
import Synchronization
import TestSupport
import Testing

@testable import EmbeddedEngine
@testable import FileSystem

@Suite(.timeLimit(.minutes(20)))
struct UpgradeTests {
    private let top = TemporaryDirectory("upgrade")
    private var data: String { top.path(of: "data") }
    private static let last: UInt64 = 30

    /// Makes a directory of the planted format 1, with commits in runs and in the log.
    private func makeOld() throws {
        var options = PowerCut.options
        options.retentionMicroseconds = 1 << 60
        let store = try Store(data, options)
        for version in 1...Self.last {
            let name = Bytes("key \(version % 11)".utf8) + [0]
            try store.commit(version, [Change(key: [0x10] + name, value: Bytes("value \(version)".utf8))])
            if version == 20 { try store.engine.checkpointNow() }
        }
        // The log keeps the last commits.
        Files.copyTree(data, to: top.path(of: "copy"))
        try store.engine.close()
        Files.remove(data)
        try Directory.rename(top.path(of: "copy"), to: data)
        PlantedFormat.plant(in: data)
    }

    private func upgrade(_ directory: String? = nil, to format: Int = 2) -> DirectoryUpgrade {
        DirectoryUpgrade(of: directory ?? data, to: format, steps: PlantedFormat.steps(to: format))
    }

    /// All entries of the directory in the present format, which then has one commit more.
    private func entries(_ directory: String, format: Int = 2) throws -> [String] {
        let store = try Store(directory, PlantedFormat.options(format))
        let found = try store.scan(at: Self.last, to: [0xF0]).map { "\($0)" }
        let next = store.engine.publishedVersion.microseconds + 1
        try store.commit(next, [Change(key: [0x10, 0x7A, 0], value: [1])])
        try store.engine.close()
        return found
    }

    /// The files of the directory that an older version reads, by hashes of their bytes.
    private func oldFiles(_ directory: String) -> [String: Int] {
        var found: [String: Int] = [:]
        for part in ["runs", "log"] {
            for name in Files.names(in: "\(directory)/\(part)") {
                found["\(part)/\(name)"] = Files.read("\(directory)/\(part)/\(name)").hashValue
            }
        }
        found["FORMAT"] = Files.read("\(directory)/FORMAT").hashValue
        return found
    }

    private func message(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "nothing was refused"
        } catch {
            return "\(error)"
        }
    }

    @Test
    func `A directory of an older format is refused with the command that upgrades it, and left alone`() throws {
        try makeOld()
        let before = oldFiles(data)
        let names = Files.names(in: data)
        var options = PlantedFormat.options(2)
        for isReadOnly in [true, false] {
            options.isReadOnly = isReadOnly
            let text = message { _ = try Store(data, options) }
            expect(
                text.contains("has format 1, and this version uses format 2: upgrade it with hearth upgrade"), "\(text)"
            )
        }
        expect(oldFiles(data) == before && Files.names(in: data) == names)
    }

    @Test
    func `A directory of a newer format, or one whose change was interrupted, is refused with what to do`() throws {
        try makeOld()
        try FormatState.format(2).write(in: data)
        expect(message { try DirectoryFormat.check(data) }.contains("a newer version has written"))
        expect(message { _ = try DirectoryUpgrade(of: data).run() }.contains("hearth upgrade --back"))
        try FormatState.changing(from: 1, to: 2).write(in: data)
        expect(message { try DirectoryFormat.check(data, format: 2) }.contains("was interrupted"))
        try FormatState.unreleased(5).write(in: data)
        expect(message { _ = try upgrade().run() }.contains("export the documents with the version that wrote it"))
        // Only the version that knows the newer of the two formats completes a change.
        try FormatState.changing(from: 1, to: 2).write(in: data)
        expect(message { _ = try DirectoryUpgrade(of: data).run() }.contains("was interrupted"))
        try FormatState.changing(from: 2, to: 1).write(in: data)
        expect(message { _ = try DirectoryUpgrade(of: data).run() }.contains("was interrupted"))
        expect(message { _ = try DirectoryUpgrade(of: top.path(of: "none")).run() }.contains("not a data directory"))
        expect(!Directory.exists(top.path(of: "none")))
    }

    @Test(arguments: [2, 3])
    func `An upgrade has all commits, keeps the old files until it is confirmed, and can be undone`(
        format: Int
    ) throws {
        try makeOld()
        let before = oldFiles(data)
        let plan = try upgrade(to: format).plan()
        expect(plan.from == 1 && plan.to == format && plan.bytesNeeded > 0 && plan.bytesFree > 0 && plan.kept == nil)
        expectEqual(oldFiles(data), before)
        let reported = Atomic<Int>(0)
        _ = try upgrade(to: format).run { reported.store($0.done, ordering: .relaxed) }
        expect(reported.load(ordering: .relaxed) > 0)
        let found = try entries(data, format: format)
        expectEqual(found.count, 11)
        try expectEqual(upgrade(to: format).plan().kept, 1)

        try expectEqual(upgrade(to: format).goBack(), 1)
        expectEqual(oldFiles(data), before)
        // A client that has seen a commit of the newer format must not continue from it.
        expectEqual(Files.names(in: data), ["FORMAT", "IDENTITY", "LOCK", "log", "runs"])
        _ = try upgrade(to: format).run()
        try expectEqual(entries(data, format: format), found)
        try expectEqual(upgrade(to: format).confirm(), 1)
        try expectNil(upgrade(to: format).confirm())
        expect(message { _ = try upgrade(to: format).goBack() }.contains("there is no way back"))
        expectEqual(Files.names(in: data), ["FORMAT", "IDENTITY", "LOCK", "TIMELINE", "log", "runs"])
        try expectEqual(entries(data, format: format), found)
    }

    @Test
    func `A directory that is in use is not upgraded`() throws {
        try makeOld()
        let lock = try DirectoryFormat.lock(data)
        for body in [{ _ = try upgrade().plan() }, { _ = try upgrade().run() }, { _ = try upgrade().goBack() }] {
            expect(message(body).contains("another process uses this data directory"))
        }
        lock.unlock()
        try expectEqual(upgrade().run().to, 2)
    }

    // MARK: Power cuts and kills

    /// What is done in a recording.
    enum Work: CaseIterable { case upgrade, back, confirm }

    @Test(arguments: Work.allCases)
    func `A kill or a power cut at any step loses nothing, and the next run completes the work`(work: Work) throws {
        try makeOld()
        let before = oldFiles(data)
        let scratch = TemporaryDirectory("upgrade-scratch")
        Files.copyTree(data, to: scratch.path(of: "data"))
        _ = try upgrade(scratch.path(of: "data")).run()
        let found = try entries(scratch.path(of: "data"))
        if work != .upgrade { _ = try upgrade().run() }

        let start = SimulatedDisk(loading: top.path)
        let recorder = DiskRecorder(top.path)
        switch work {
        case .upgrade: _ = try upgrade().run()
        case .back: _ = try upgrade().goBack()
        case .confirm: _ = try upgrade().confirm()
        }
        let events = recorder.end()
        var random = SeededGenerator(seed: UInt64(events.count))
        var disk = start
        for (number, event) in ([nil] + events.map(Optional.init)).enumerated() {
            if let event { disk.apply(event) }
            let isOver = number == events.count
            for kept in [.all, random.pick([.nothing, .namesInOrder, .any])] as [SimulatedDisk.Kept] {
                let cut = TemporaryDirectory("upgrade-cut")
                disk.write(kept, to: cut.path(of: "disk"), &random)
                let path = cut.path(of: "disk/data")
                let place = "\(work), before event \(number), keeps \(kept)"
                switch work {
                case .upgrade:
                    // At any time the directory is the old one, the new one, or to be completed.
                    let state = try FormatState(of: path)
                    if state == .format(1) { expectEqual(oldFiles(path), before, "\(place)") }
                    expect(!isOver || state == .format(2), "\(place)")
                    _ = try upgrade(path).run()
                    try expectEqual(entries(path), found, "\(place)")
                    try expectEqual(upgrade(path).goBack(), 1)
                    expectEqual(oldFiles(path), before, "\(place)")
                case .back:
                    let state = try FormatState(of: path)
                    expect(!isOver || state == .format(1), "\(place)")
                    if state == .format(2) {
                        _ = try upgrade(path).goBack()
                    } else if state != .format(1) {
                        try expectEqual(upgrade(path).run().to, 1, "\(place)")
                    }
                    expectEqual(oldFiles(path), before, "\(place)")
                case .confirm:
                    _ = try upgrade(path).confirm()
                    expectEqual(
                        Files.names(in: path), ["FORMAT", "IDENTITY", "LOCK", "TIMELINE", "log", "runs"], "\(place)")
                    try expectEqual(entries(path), found, "\(place)")
                }
            }
        }
    }

    // MARK: A full disk

    @Test
    func `A full disk at any step leaves the old directory, or one that the next run completes`() throws {
        try makeOld()
        let before = oldFiles(data)
        let original = top.path(of: "original")
        Files.copyTree(data, to: original)
        var completed = 0
        for failing in 0... {
            Files.remove(data)
            Files.copyTree(original, to: data)
            let count = Atomic<Int>(0)
            // From one change on the disk takes no more bytes and names.
            let recorder = DiskRecorder(data) { change in
                let needsSpace =
                    switch change {
                    case .write, .makeDirectory, .link: true
                    case .open(_, _, let creates, _): creates
                    default: false
                    }
                guard needsSpace else { return 0 }
                return count.add(1, ordering: .relaxed).oldValue >= failing ? ENOSPC : 0
            }
            let outcome = message { _ = try upgrade().run() }
            _ = recorder.end()
            if outcome == "nothing was refused" { break }
            expect(outcome.contains("space") || outcome.contains("cannot be linked"), "\(outcome)")
            if try FormatState(of: data) == .format(1) {
                expectEqual(oldFiles(data), before)
                let names = Files.names(in: data).filter { $0 != "FORMAT.new" }
                expectEqual(names, ["FORMAT", "IDENTITY", "LOCK", "TIMELINE", "log", "runs"], "\(failing)")
            } else {
                completed += 1
            }
            _ = try upgrade().run()
            try expectEqual(entries(data).count, 11)
        }
        // The new FORMAT could not be written once.
        expect(completed > 0)
    }

    @Test
    func `An upgrade that needs more space than there is does not begin`() throws {
        try makeOld()
        struct LargeStep: FormatStep {
            let from = 1
            func bytesNeeded(for files: FormatFiles) throws(StorageError) -> Int { .max }
            func convert(_ source: FormatFiles, to target: FormatFiles, report: (Int) -> Void) throws(StorageError) {}
        }
        let error = #expect(throws: StorageError.self) {
            _ = try DirectoryUpgrade(of: data, to: 2, steps: [LargeStep()]).run()
        }
        expectEqual(error?.code, .full)
        expectEqual(Files.names(in: data), ["FORMAT", "IDENTITY", "LOCK", "TIMELINE", "log", "runs"])
    }
}
