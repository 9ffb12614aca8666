// The scrub: it reads every file from the disk, finds damage that no read has met, and stays within its pace.

import EngineTestSupport
import Foundation
import Storage
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.timeLimit(.minutes(20)))
struct ScrubTests {
    private let directory = TemporaryDirectory("scrub", on: .disk)
    private var data: String { directory.path(of: "data") }

    private static var options: EngineOptions {
        var options = EngineOptions.small
        options.scrubMilliseconds = 1
        return options
    }

    private func makeRuns() throws {
        let store = try Store(data)
        for version in 1...40 as ClosedRange<UInt64> {
            let value = String(repeating: "\(version) ", count: 1_000)
            try store.commit(
                version,
                [
                    Change(key: [0x10] + Bytes("k\(version)".utf8) + [0], value: Bytes(value.utf8)),
                    .put("entry \(version)", value),
                ])
            if version % 20 == 0 { try store.engine.checkpointNow() }
        }
        try store.engine.close()
    }

    private func files() -> [String] {
        let names = Files.names(in: "\(data)/runs").filter { $0.contains(".") && !$0.hasSuffix(".new") }
        return names.map { "\(data)/runs/\($0)" }
    }

    @Test
    func `Everything is read again and again, and nothing is found in files that are whole`() throws {
        try makeRuns()
        let store = try Store(data, Self.options)
        try store.commit(41, [.put("log", String(repeating: "x", count: 10_000))])
        let bytes = store.engine.statistics.runBytes
        try waitUntil("two passes are made") { store.engine.scrub.passes >= 2 }
        expect(store.engine.scrub.bytesRead >= UInt64(2 * bytes))
        expectEqual(store.engine.scrub.damage, [])
        expect(store.engine.scrub.lastEndMicroseconds != nil)
        try store.engine.close()
    }

    @Test
    func `Damage of any file is found with its name, and forgotten when the file is merged away`() throws {
        try makeRuns()
        expect(files().count >= 3)
        for path in files() {
            let store = try Store(data, Self.options)
            let whole = Files.read(path)
            var damaged = whole
            damaged[whole.count / 3] ^= 0x10
            Files.write(damaged, to: path)
            try waitUntil("the damage of \(path) is found") {
                store.engine.scrub.damage.contains { $0.file == path && $0.code == .corrupt }
            }
            Files.write(whole, to: path)
            try waitUntil("the repair is noticed") { store.engine.scrub.damage == [] }
            try store.engine.close()
        }
        try expectClean(data)
    }

    @Test(arguments: [0, 1 << 20, 15_000_000_000, 1 << 50, Int.max])
    func `A store of any size has a pace`(bytes: Int) {
        let week: UInt64 = 604_800_000_000_000
        let rate = Scrubber.bytesPerSecond(ofStore: bytes, intervalNanoseconds: week)
        expect(rate >= 8 << 20)
        if bytes < 1 << 50 { expect(UInt64(bytes) / rate <= 604_800 * 4 / 5) }
        expect(Scrubber.bytesPerSecond(ofStore: bytes, intervalNanoseconds: 0) >= 8 << 20)
    }

    @Test
    func `A pass takes its time, and the engine closes meanwhile`() throws {
        try makeRuns()
        var options = Self.options
        options.scrubMilliseconds = 1 << 40
        let store = try Store(data, options)
        try waitUntil("a pass is made") { store.engine.scrub.passes == 1 }
        expectEqual(store.engine.scrub.passes, 1)
        try store.engine.close()
    }
}
