// The rules that a data directory keeps, and what a process leaves that ends between two steps.

import Authorization
import Foundation
import SecurityRules
import Storage
import Synchronization
import TestSupport
import Testing

@testable import FileSystem

@Suite(.timeLimit(.minutes(20)))
struct RulesHistoryTests {
    private let directory = TemporaryDirectory("rules", on: .memory)
    private var history: RulesHistory { RulesHistory(dataDirectory: directory.path) }

    private func write(_ name: String, _ bytes: [UInt8]) throws {
        let folder = directory.path(of: "rules")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try Data(bytes).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
    }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path(of: "rules")).sorted()
    }

    private func permissions(_ name: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: directory.path(of: name))[.posixPermissions] as? Int
    }

    @Test
    func `Texts have numbers from 1 on and are read as they were given, in files for their owner`() throws {
        try expect(history.all().isEmpty && history.newest() == nil && history.previous() == nil)
        let texts = ["a\r\n", "", "é\0", String(repeating: "x", count: RulesLimits.sourceBytes)]
        for text in texts { _ = try history.append(text) }
        let entries = try history.all()
        expectEqual(entries.map(\.number), [1, 2, 3, 4])
        expectEqual(entries.map(\.byteCount), texts.map(\.utf8.count))
        expect(entries.allSatisfy { $0.time > 1_700_000_000_000_000 })
        for (index, text) in texts.enumerated() {
            try expectEqual(Array(history.text(index + 1).utf8), Array(text.utf8))
        }
        try expect(history.newest() == 4 && history.previous() == 3)
        try expectEqual(names(), ["000001.rules", "000002.rules", "000003.rules", "000004.newest", "000004.rules"])
        try expect(permissions("rules") == 0o700 && permissions("rules/000004.rules") == 0o600)
        #expect(throws: StorageError.self) { try history.append(texts[3] + "x") }
        try expectEqual(history.newest(), 4)
    }

    @Test
    func `The newest hundred are kept`() throws {
        for number in 1...102 { try expectEqual(history.append("\(number)").number, number) }
        let entries = try history.all()
        expect(entries.count == RulesHistory.entriesMax && entries.first?.number == 3)
        try expectEqual(names().count, RulesHistory.entriesMax + 1)
        try expect(history.text(3) == "3" && history.text(102) == "102")
        #expect(throws: StorageError.self) { try history.text(2) }
    }

    @Test
    func `Names of other forms are ignored, and numbers are not texts`() throws {
        for name in ["1.rules", "0000001.rules", "000000.rules", "000009.rules~", "00000x.rules", "+00001.rules"] {
            try write(name, [0x78])
        }
        try write("9999999999.rules", [0x78])
        try expectNil(history.newest())
        try write("999999.rules", Array("old".utf8))
        try expectEqual(history.append("new").number, 1_000_000)
        try expect(history.newest() == 1_000_000 && history.previous() == 999_999)
        try expectEqual(history.text(1_000_000), "new")
    }

    @Test
    func `What cannot be read as rules is an error`() throws {
        try write("000001.rules", [0x78, 0xFF])
        try write("000002.rules", [UInt8](repeating: 0x78, count: RulesLimits.sourceBytes + 1))
        try FileManager.default.createDirectory(
            atPath: directory.path(of: "rules/000003.rules"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: directory.path(of: "rules/000004.rules"), withDestinationPath: "/nowhere")
        for (number, code) in [(1, StorageError.Code.corrupt), (2, .inputOutput), (3, .corrupt), (4, .inputOutput)] {
            let error = #expect(throws: StorageError.self) { try history.text(number) }
            expectEqual(error?.code, code, "\(number)")
        }
        try expectEqual(history.newest(), 4)
    }

    @Test
    func `The newest rules that are missing are an error, and no older ones are in force`() throws {
        for text in ["first", "second", "third"] { _ = try history.append(text) }
        try FileManager.default.removeItem(atPath: history.file(3))
        let error = #expect(throws: StorageError.self) { try history.newest() }
        expect(error?.code == .corrupt && error?.file == history.file(3))
        try expect(history.previous() == 2 && history.highest() == 3)
        // None is left.
        for number in 1...2 { try FileManager.default.removeItem(atPath: history.file(number)) }
        #expect(throws: StorageError.self) { try history.newest() }
        // Others take their place, under another number.
        try expectEqual(history.append("fourth").number, 4)
        try expect(history.newest() == 4 && history.text(4) == "fourth")
    }

    @Test
    func `Rules that are missing before the newest are an error, unless numbers were left out`() throws {
        _ = try history.append("first")
        _ = try history.append("second", numberMin: 7)
        try expectEqual(history.previous(), 1)
        _ = try history.append("third")
        try expectEqual(history.previous(), 7)
        try FileManager.default.removeItem(atPath: history.file(7))
        let error = #expect(throws: StorageError.self) { try history.previous() }
        expect(error?.code == .corrupt && error?.file == history.file(7))
        try expectEqual(history.newest(), 8)
        _ = try history.append("fourth")
        try expectEqual(history.previous(), 8)
        // Of before the number was noted.
        try write("000009.newest", Array("9\n".utf8))
        try FileManager.default.removeItem(atPath: history.file(8))
        try expectEqual(history.previous(), 1)
    }

    @Test
    func `A copy of damaged rules has the texts that can be read, and not an older one in place of the newest`() throws
    {
        let copies = TemporaryDirectory("rules", on: .memory)
        func copy(_ name: String) throws -> RulesHistory {
            try FileManager.default.createDirectory(
                atPath: copies.path(of: name), withIntermediateDirectories: true)
            try FileManager.default.copyItem(
                atPath: directory.path(of: "rules"), toPath: copies.path(of: name) + "/rules")
            return RulesHistory(dataDirectory: copies.path(of: name))
        }
        for text in ["first", "second", "third"] { _ = try history.append(text) }
        let whole = try copy("whole")
        try expect(whole.removeUnreadable(of: history).isEmpty && whole.newest() == 3)
        try write("000002.rules", [0xFF])
        let old = try copy("old")
        try expectEqual(old.removeUnreadable(of: history).map(\.file), [history.file(2)])
        try expect(old.newest() == 3 && old.all().map(\.number) == [1, 3])
        try write("000003.rules", [0xFF])
        // As in a directory of before there were notes.
        try FileManager.default.removeItem(atPath: directory.path(of: "rules/000003.newest"))
        let damaged = try copy("damaged")
        try expectEqual(damaged.removeUnreadable(of: history).map(\.file), [history.file(2), history.file(3)])
        #expect(throws: StorageError.self) { try damaged.newest() }
        try expectEqual(damaged.all().map(\.number), [1])
        let empty = RulesHistory(dataDirectory: copies.path(of: "empty"))
        try empty.noteMissing()
        #expect(throws: StorageError.self) { try empty.newest() }
    }

    @Test(arguments: [true, false])
    func `A directory that cannot be listed is an error, and not one without rules`(isLink: Bool) throws {
        let path = directory.path(of: "rules")
        if isLink {
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/nowhere")
        } else {
            try Data().write(to: URL(fileURLWithPath: path))
        }
        #expect(throws: StorageError.self) { try history.newest() }
        #expect(throws: StorageError.self) { try history.append("x") }
    }

    /// - Parameters:
    ///   - isEnd: whether no change is made from the failing one on, as if the process had ended; else all others are.
    ///   - kept: texts that are there before.
    @Test(arguments: [(true, 0), (true, 1), (true, 100), (false, 0), (false, 1), (false, 100)])
    func `A change that fails at any step leaves the rules of before or after`(isEnd: Bool, kept: Int) throws {
        var steps = 0
        var isWhole = false
        while !isWhole {
            let directory = TemporaryDirectory("rules", on: .memory)
            let history = RulesHistory(dataDirectory: directory.path)
            for number in 0..<kept { _ = try history.append("old \(number)") }
            let fault = DiskFault(in: directory.path, at: steps, isEnd: isEnd)
            let entry = try? history.append("new")
            isWhole = fault.end() <= steps
            let newest = try history.newest().map { try history.text($0) }
            let before = kept == 0 ? nil : "old \(kept - 1)"
            if entry != nil {
                expectEqual(newest, "new")
            } else if isEnd {
                expect(newest == before || newest == "new", "step \(steps)")
            } else {
                expectEqual(newest, before, "step \(steps)")
            }
            // What is left does not disturb the next change.
            _ = try history.append("next")
            try expectEqual(history.newest().map { try history.text($0) }, "next")
            let names = try FileManager.default.contentsOfDirectory(atPath: "\(directory.path)/rules")
            let texts = names.filter { $0.hasSuffix(".rules") }
            expect(texts.count <= RulesHistory.entriesMax && names.count == texts.count + 1)
            steps += 1
        }
        expect(steps > 5)
    }
}

/// Makes a change of files in a directory fail. Closing a file is not a change.
private final class DiskFault: Sendable {
    private let changes = Mutex(0)
    private let watch: Mutex<DiskWatch?> = Mutex(nil)

    /// - Parameters:
    ///   - step: changes that are made before the one that fails.
    ///   - isEnd: whether all later ones fail too.
    init(in directory: String, at step: Int, isEnd: Bool) {
        let began = DiskWatch.begin(directory) { [weak self] change, call in
            if case .close = change { return call() }
            let index = self?.changes.withLock { changes in
                defer { changes += 1 }
                return changes
            }
            guard let index, index == step || index > step && isEnd else { return call() }
            errno = EIO
            return -1
        }
        watch.withLock { $0 = began }
    }

    /// Makes changes succeed again; the number of changes that were attempted.
    func end() -> Int {
        watch.withLock { $0?.end() }
        return changes.withLock { $0 }
    }
}
