// Directories of formats 1 and 2, which have a tree, become directories with runs when they are opened. Those of format
// 3 have runs without hash indexes, those of format 4 hash indexes without a seed.

import Foundation
import TestSupport
import Testing

@testable import KeyValueStore

@Suite("Upgrade", .timeLimit(.minutes(20)))
struct UpgradeTests {
    let directory = TemporaryDirectory()

    /// A copy of a directory that the last build of a format left when it was killed: six commits, the tree has four.
    private func makeOld(_ name: String, _ format: DirectoryFormat.Version) -> String {
        let path = directory.path(of: name)
        let fixture = [.one: "format-1", .two: "format-2", .three: "format-3", .four: "format-4"][format]!
        Files.copyTree(Bundle.module.resourcePath! + "/Fixtures/" + fixture, to: path)
        return path
    }

    /// The entries as of a version, as the fixture was made.
    private func expected(_ version: UInt64) -> [Entry] {
        var entries: [Entry] = []
        for number in 0..<40 {
            let key = Bytes("key \(number)".utf8)
            // From the third commit on only these are changed, and the fourth removes one.
            let isChanged = number < 10 || number % 10 % 3 == 0
            let written = isChanged ? version : min(version, 2)
            if number == 7 && version == 4 { continue }
            entries.append(Entry(key: key, value: Bytes("value \(number) of \(written)".utf8), version: written))
        }
        entries.append(
            Entry(
                key: Bytes("large".utf8), value: Bytes(repeating: UInt8(version), count: 3000 + Int(version)),
                version: version))
        return entries.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }

    private func expectUpgraded(_ path: String) throws {
        var options = EngineOptions.small
        options.latestOnlySpaces = [0xF0]
        let store = try Store(path, options)
        #expect(store.engine.publishedVersion.microseconds == 6)
        for version in 1...6 as ClosedRange<UInt64> {
            #expect(try store.scan(at: version, to: [0xF0]) == expected(version), "version \(version)")
        }
        try store.commit(7, [.put("after", "7")])
        try store.engine.close()
        #expect(Files.read(path + "/FORMAT") == Bytes(DirectoryFormat.Version.current.rawValue.utf8))
        #expect(!Files.names(in: path).contains("upgrade") && !Files.names(in: path).contains("tree"))
        try expectClean(path)
        #expect(try Store(path, options).get("after") == "7")
    }

    @Test(
        "A directory of an older format is checked as it is, and upgraded when it is opened",
        arguments: [DirectoryFormat.Version.one, .two, .three, .four])
    func upgrade(format: DirectoryFormat.Version) throws {
        let path = makeOld("old", format)
        try expectClean(path)
        #expect(Files.read(path + "/FORMAT") == Bytes(format.rawValue.utf8))
        try expectUpgraded(path)
    }

    @Test(
        "An upgrade that ended in the middle is done again, or finished",
        arguments: [DirectoryFormat.Version.one, .two])
    func interrupted(format: DirectoryFormat.Version) throws {
        let begun = makeOld("begun", format)
        for name in ["upgrade", "runs"] { mkdir(begun + "/" + name, 0o700) }
        Files.write([1, 2, 3], to: begun + "/upgrade/data.mdb")
        Files.write([1, 2, 3], to: begun + "/runs/0000000000000001.run")
        Files.write([1, 2, 3], to: begun + "/runs/MANIFEST.new")
        try expectClean(begun)
        try expectUpgraded(begun)

        // The runs are there, and FORMAT is old; then FORMAT is new, and the tree is there.
        for isFormatted in [false, true] {
            let upgraded = makeOld("upgraded \(isFormatted)", format)
            _ = try DirectoryFormat.lock(upgraded)
            try DirectoryFormat.openOrCreate(upgraded, .small)
            Files.copyTree(makeOld("tree \(isFormatted)", format) + "/tree", to: upgraded + "/tree")
            if !isFormatted { Files.write(Bytes(format.rawValue.utf8), to: upgraded + "/FORMAT") }
            try expectUpgraded(upgraded)
        }
    }

    @Test(
        "A damaged tree of an older format is refused and left alone", arguments: [DirectoryFormat.Version.one, .two])
    func damaged(format: DirectoryFormat.Version) throws {
        let path = makeOld("old", format)
        var tree = Files.read(path + "/tree/data.mdb")
        for offset in stride(from: 2 * 4096, to: tree.count, by: 4096) { tree[offset + 10] ^= 0xFF }
        Files.write(tree, to: path + "/tree/data.mdb")
        let error = #expect(throws: StorageError.self) { try Store(path) }
        #expect(error?.code == .corrupt)
        #expect(Files.read(path + "/tree/data.mdb") == tree)
        #expect(try !EngineCheck.run(directory: path).isClean)
    }
}
