// Damage to any file of a directory: it is refused, or named where it is met, or it changes nothing. Never a crash,
// never a wrong value, and nothing is missing in silence.

import EngineTestSupport
import Foundation
import Storage
import TestSupport
import Testing

@testable import EmbeddedEngine

/// A directory with several runs, one being merged, history, large values, and a log.
private final class DamagedDirectory {
    private let directory = TemporaryDirectory()
    let original: String
    let copy: String
    let model: Model
    let keys: [Bytes]
    /// The last version, which is in the log alone; the runs have everything before.
    let last: UInt64
    private var entries: [UInt64: [Entry]] = [:]
    static let options: EngineOptions = {
        var options = EngineOptions.small
        options.logSegmentBytes = 32 << 10
        options.runFileBytesMax = 16 << 10
        return options
    }()

    init(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let live = directory.path(of: "live")
        original = directory.path(of: "original")
        copy = directory.path(of: "copy")
        // Some of documents, some of entries.
        let keys = (0..<500).map { number in
            let space: Bytes = number % 5 < 3 ? [0x10] : []
            return space + Bytes("\(number % 7)/a key of some length, number \(number)".utf8) + [0]
        }
        let store = try Store(live, Self.options)
        var model = Model()
        for version in 1...8 as ClosedRange<UInt64> {
            let changes = (0..<(version == 1 ? 500 : 60)).map { number in
                let key = version == 1 ? keys[number] : random.pick(keys)
                let length = random.oneIn(20) ? 1_000 + random.below(8_000) : random.below(120)
                let value = Bytes((0..<length).map { _ in UInt8(random.below(256)) })
                return Change(key: key, value: random.oneIn(8) ? nil : value)
            }
            try store.commit(version, changes)
            model.commit(version, changes)
            if version < 8 && version != 5 { try store.engine.checkpointNow() }
        }
        Files.copyTree(live, to: original)
        try store.engine.close()
        self.model = model
        self.keys = model.keys
        last = 8
    }

    /// All entries as of a version.
    func entries(at version: UInt64) -> [Entry] {
        if let known = entries[version] { return known }
        let found = model.entries([], Bytes(repeating: 255, count: 500), at: version, .forward)
        entries[version] = found
        return found
    }

    /// Makes `copy` the undamaged directory.
    func restore() {
        Files.remove(copy)
        Files.copyTree(original, to: copy)
    }

    /// Files that may be damaged, by their path in the directory. Damage to unused segments of the log changes nothing.
    var files: [String] {
        ["FORMAT"] + runFiles + Files.names(in: original + "/log").map { "log/\($0)" }
    }

    /// The manifest and the files of runs.
    var runFiles: [String] {
        Files.names(in: original + "/runs").filter { $0 != "space" }.map { "runs/\($0)" }
    }
}

/// What came of a look at a damaged directory.
private enum Outcome: Equatable {
    /// It was refused, or something in it was, with the place.
    case refused
    /// All that was read and written was right.
    case right
    /// The last commits are gone: the end of the log looks like one that was torn.
    case cut
}

@Suite(.timeLimit(.minutes(20)))
struct DamageTests {
    /// Reads everything in several ways, writes, checkpoints, reads again.
    private func look(_ damaged: DamagedDirectory, _ what: String) throws -> Outcome {
        do {
            let store = try Store(damaged.copy, DamagedDirectory.options)
            defer { try? store.engine.close() }
            let last = store.engine.publishedVersion.microseconds
            try read(store, damaged, upTo: last, what)
            var model = damaged.model
            for (number, version) in ((last + 1)...(last + 3)).enumerated() {
                let changes = stride(from: number, to: damaged.keys.count, by: 5).map {
                    Change(key: damaged.keys[$0], value: $0 % 2 == 0 ? nil : Bytes("again".utf8))
                }
                try store.commit(version, changes)
                try store.engine.checkpointNow()
                if last == damaged.last {
                    model.commit(version, changes)
                    try expectEqual(
                        store.scan().map(\.key), model.entries([], [255], at: version, .forward).map(\.key), "\(what)")
                }
            }
            return last == damaged.last ? .right : .cut
        } catch let error as StorageError {
            // Commits are refused when a merge has met damage.
            expect([.corrupt, .unsupportedFormat, .refused].contains(error.code), "\(what): \(error)")
            expect(error.file != nil, "\(what): \(error)")
            let isDamage = error.code == .corrupt || error.code == .refused
            expect(!isDamage || error.description.contains("restore a backup"), "\(what): \(error)")
            return .refused
        }
    }

    private func read(_ store: Store, _ damaged: DamagedDirectory, upTo last: UInt64, _ what: String) throws {
        let reader = try store.engine.makeReader()
        for version in [last, last - 1, 3, 1] {
            let snapshot = try reader.snapshot(at: CommitVersion(microseconds: version))
            let expected = damaged.entries(at: version)
            try expectEqual(snapshot.entries(), expected, "\(what): a walk at \(version)")
            try expectEqual(
                snapshot.entries(nil, nil, .backward), expected.reversed(), "\(what): a walk back at \(version)")
            for key in damaged.keys where version == last || key.last! % 4 == version % 4 {
                let found = try snapshot.bytes(key)
                if found != damaged.model.value(key, at: version) {
                    Issue.record("\(what): a lookup at \(version) of \(String(decoding: key, as: UTF8.self))")
                    return
                }
            }
        }
    }

    /// Looks at the damaged copy; what is not right must be found by the check as well.
    private func expectHonest(_ damaged: DamagedDirectory, _ what: String, mayCut: Bool) throws {
        let problems: [String]
        do { problems = try EngineCheck.run(directory: damaged.copy).problems } catch { problems = ["\(error)"] }
        let outcome = try look(damaged, what)
        expect(outcome != .refused || !problems.isEmpty, "\(what): the check found nothing")
        expect(outcome != .cut || mayCut, "\(what): commits are gone")
    }

    @Test
    func `The directory that the other tests damage is right`() throws {
        let damaged = try DamagedDirectory(seed: 1)
        damaged.restore()
        try expectClean(damaged.copy)
        try expectEqual(look(damaged, "undamaged"), .right)
        try expectClean(damaged.copy)
    }

    @Test
    func `A flipped bit in any part of each file is found by the check, and never served`() throws {
        let damaged = try DamagedDirectory(seed: 2)
        var random = SeededGenerator(seed: 7)
        let places = damaged.runFiles.flatMap { file in
            let count = Files.read(damaged.original + "/" + file).count
            return stride(from: 0, to: count, by: 2048).map { start in
                (file: file, offset: start + random.below(min(2048, count - start)), bit: random.below(8))
            }
        }
        // Every file in each run.
        for (_, places) in Dictionary(grouping: places, by: \.file) {
            for place in CaseShare.of(places, 4) {
                damaged.restore()
                let path = damaged.copy + "/" + place.file
                var bytes = Files.read(path)
                bytes[place.offset] ^= 1 << place.bit
                Files.write(bytes, to: path)
                try expectHonest(damaged, "\(place)", mayCut: false)
            }
        }
    }

    @Test
    func `A damaged value is named by its file and block, and others are served`() throws {
        let directory = TemporaryDirectory()
        let value = Bytes((0..<5_000).map { UInt8(truncatingIfNeeded: $0 * 31 >> 3) })
        do {
            let store = try Store(directory.path)
            try store.commit(
                1,
                (0..<40).map { Change(key: [1, $0], value: Bytes(repeating: $0, count: 900)) }
                    + [Change(key: [2], value: value)]
                    + (0..<40).map { Change(key: [3, $0], value: Bytes(repeating: $0, count: 900)) })
            try store.engine.close()
        }
        let names = Files.names(in: directory.path(of: "runs")).filter { $0.hasSuffix(".mdb") }
        expect(names.count > 0)
        var damaged: (path: String, place: Int)?
        for name in names {
            let path = directory.path(of: "runs/" + name)
            var bytes = Files.read(path)
            guard let place = bytes.indices.first(where: { bytes[$0...].starts(with: value) }) else { continue }
            bytes[place + 100] ^= 1
            Files.write(bytes, to: path)
            damaged = (path, place)
        }
        let (path, place) = try #require(damaged)
        let store = try Store(directory.path)
        let snapshot = try store.engine.makeReader().snapshot()
        let error = #expect(throws: StorageError.self) { try snapshot.bytes([2]) }
        expectEqual(error?.code, .corrupt)
        expectEqual(error?.file, path)
        let offset = try #require(error?.offset)
        expect(offset < place && offset > place - 12_000)
        try expectEqual(snapshot.bytes([1, 0]), Bytes(repeating: 0, count: 900))
        try expectEqual(snapshot.bytes([3, 39]), Bytes(repeating: 39, count: 900))
        #expect(throws: StorageError.self) { try snapshot.entries() }
    }

    @Test
    func `A checkpoint does not read damaged runs; a merge that meets damage ends writing`() throws {
        let directory = TemporaryDirectory()
        let value = String(repeating: "the value ", count: 5)
        do {
            let store = try Store(directory.path)
            try store.commit(1, [.put("a", "1"), .put("b", value), .put("c", "1")])
            try store.engine.close()
        }
        for name in Files.names(in: directory.path(of: "runs")) where name.hasSuffix(".run") {
            let path = directory.path(of: "runs/" + name)
            var bytes = Files.read(path)
            for place in bytes.indices where bytes[place...].starts(with: Bytes(value.utf8)) { bytes[place] ^= 1 }
            Files.write(bytes, to: path)
        }
        let store = try Store(directory.path)
        try store.commit(2, [.put("a", "2")])
        try store.engine.checkpointNow()
        try expectEqual(store.get("a"), "2")
        let read = #expect(throws: StorageError.self) { try store.get("b") }
        expectEqual(read?.code, .corrupt)
        let merged = #expect(throws: StorageError.self) { try store.engine.sweepHistoryNow() }
        expectEqual(merged?.code, .corrupt)
        let written = #expect(throws: StorageError.self) { try store.commit(3, [.put("b", "3")]) }
        expectEqual(written?.code, .refused)
        expectEqual(written?.message.contains("is damaged"), true)
    }

    /// Seeds of the fuzzer; many more with HEARTH_SOAK.
    private static let rounds = ProcessInfo.processInfo.environment["HEARTH_SOAK"] == nil ? 60 : 20_000

    @Test
    func `Damage of any kind to any file ends in a refusal or changes nothing`() throws {
        let seed =
            ProcessInfo.processInfo.environment["HEARTH_SEED"].flatMap(UInt64.init) ?? UInt64.random(in: 0..<1 << 32)
        print("damage: HEARTH_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        let damaged = try DamagedDirectory(seed: seed)
        let files = damaged.files
        let logs = files.filter { $0.hasPrefix("log/") }
        for round in 0..<Self.rounds {
            damaged.restore()
            let file = random.oneIn(3) ? random.pick(files) : random.pick(damaged.runFiles)
            let kind = damage(damaged.copy + "/" + file, &random)
            // The end of the log may be a torn group, and nothing can tell that there ever was another segment.
            let mayCut = logs.contains(file)
            try expectHonest(damaged, "seed \(seed), round \(round), \(file): \(kind)", mayCut: mayCut)
        }
    }

    /// Damages a file in one of several ways; answers how.
    private func damage(_ path: String, _ random: inout SeededGenerator) -> String {
        var bytes = Files.read(path)
        let pages = max(1, bytes.count / 4096)
        func range(of page: Int) -> Range<Int> { (page * 4096)..<min(bytes.count, page * 4096 + 4096) }
        switch random.below(bytes.count >= 8192 ? 10 : 6) {
        case 0:
            Files.remove(path)
            return "removed"
        case 1:
            let size = random.below(bytes.count)
            Files.write(Bytes(bytes.prefix(size)), to: path)
            return "cut to \(size)"
        case 2...5:
            let places = (0...random.below(3)).map { _ in random.below(bytes.count) }
            for place in places { bytes[place] ^= 1 << random.below(8) }
            Files.write(bytes, to: path)
            return "bits flipped at \(places)"
        case 6, 7:
            let page = random.below(pages)
            for index in range(of: page) { bytes[index] = UInt8(random.below(256)) }
            Files.write(bytes, to: path)
            return "page \(page) overwritten"
        case 8:
            let page = random.below(pages)
            for index in range(of: page) { bytes[index] = 0 }
            Files.write(bytes, to: path)
            return "page \(page) zeroed"
        default:
            let (first, second) = (random.below(pages), random.below(pages))
            let old = Bytes(bytes[range(of: first)])
            bytes.replaceSubrange(range(of: first), with: bytes[range(of: second)])
            bytes.replaceSubrange(range(of: second), with: old)
            Files.write(bytes, to: path)
            return "pages \(first) and \(second) swapped"
        }
    }
}
