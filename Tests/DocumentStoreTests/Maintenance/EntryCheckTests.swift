// The check compares the index entries of many documents as a whole, and names each that is missing.

import Basics
import DocumentModel
import Foundation
import Storage
import StorageEngines
import TestSupport
import Testing

@testable import DocumentStore
@testable import StoreFormat

@Suite(.timeLimit(.minutes(20)))
struct EntryCheckTests {
    /// A store with several thousand index entries.
    private func filled() async throws -> StoreHarness {
        let harness = try StoreHarness()
        for part in 0..<6 {
            try await harness.commit(
                (0..<100).map { number in
                    let value = Int64(part * 100 + number)
                    let tags = Value.array([.string("t\(value % 7)"), .string("u\(value)")])
                    return .set(
                        "c\(value % 3)/\(value)",
                        MapValue([
                            ("n", .integer(value % 50)), ("s", .string("text \(value)")), ("tags", tags),
                            ("m", .map(MapValue([("inner", .double(Double(value) / 3))]))),
                        ]))
                })
        }
        return harness
    }

    private func storedEntries(_ harness: StoreHarness) throws -> [[UInt8]] {
        let snapshot = try harness.store.engine.makeReader().snapshot()
        let lower = [KeySpace.values.rawValue]
        let upper = [KeySpace.declared.rawValue + 1]
        var cursor = try snapshot.cursor(from: lower.byteSpan, to: upper.byteSpan)
        var entries: [[UInt8]] = []
        while try cursor.next() { entries.append([UInt8](copying: cursor.key)) }
        return entries
    }

    /// Changes entries of a closed store without its knowledge, then checks.
    private func check(
        _ harness: StoreHarness, removing removed: [[UInt8]], adding added: [[UInt8]]
    ) throws -> StoreCheck.Report {
        try harness.check { batch in
            let nothing: [UInt8] = []
            for key in removed { batch.delete(key: key.byteSpan) }
            for key in added { batch.put(key: key.byteSpan, value: nothing.byteSpan) }
        }
    }

    /// The entries that problems say are missing, as digits, in order.
    private func missing(_ report: StoreCheck.Report) -> [String] {
        report.problems.compactMap { problem in
            guard problem.hasPrefix("a document lacks an index entry: ") else { return nil }
            return problem.components(separatedBy: " lacks ").last
        }.sorted()
    }

    private func digits(_ entries: [[UInt8]]) -> [String] { entries.map { Hexadecimal.text($0.byteSpan) }.sorted() }

    @Test(.needsFiles)
    func `The entries of many documents are counted, and each missing or superfluous one is noticed`() async throws {
        let harness = try await filled()
        let entries = try storedEntries(harness)
        expect(entries.count > 3_000)
        expectNil(harness.store.close())

        let clean = try check(harness, removing: [], adding: [])
        expectEqual(clean.problems, [])
        expectEqual(clean.documents, 600)
        expectEqual(clean.indexEntries, entries.count)

        var random = SeededGenerator(seed: 26)
        var others = entries
        others.shuffle(using: &random)
        let removed = Array(others.prefix(40))
        // Of no document: the last byte of its name is another.
        let added = others.suffix(40).map { $0.dropLast() + [$0.last! ^ 1] }.filter { !entries.contains($0) }
        expect(!added.isEmpty)

        let lacking = try check(harness, removing: removed, adding: [])
        expectEqual(missing(lacking), digits(removed))
        expectEqual(lacking.problems.count, removed.count + 1)
        expectEqual(lacking.indexEntries, entries.count - removed.count)
        expect(lacking.isRepairable)

        // As many as there should be, but others.
        let swapped = try check(harness, removing: Array(removed.prefix(added.count)), adding: added)
        expectEqual(missing(swapped), digits(Array(removed.prefix(added.count))))
        expectEqual(swapped.indexEntries, entries.count)
        expect(swapped.isRepairable)

        let more = try check(harness, removing: [], adding: Array(added.prefix(1)))
        expect(more.problems.count == 1 && more.problems[0].contains("there are \(entries.count + 1) index entries"))
        expect(more.isRepairable)
    }

    @Test
    func `Sums of entries are balanced if both sets are equal, in any order, and not if one entry differs`() {
        var random = SeededGenerator(seed: 1)
        let keys = (0..<5_000).map { number in
            (0..<(1 + random.below(70))).map { _ in UInt8(random.below(256)) } + Array("\(number)".utf8)
        }
        var balance = EntryBalance()
        for key in keys { balance.require(key.byteSpan) }
        expect(!balance.isBalanced)
        for key in keys.shuffled(using: &random) { balance.find(key.byteSpan) }
        expect(balance.isBalanced)
        for key in keys.prefix(200) {
            var other = key
            other[random.below(other.count)] ^= UInt8(1 << random.below(8))
            balance.require(key.byteSpan)
            expect(!balance.isBalanced && !balance.isBalanced(around: key.byteSpan))
            balance.find(other.byteSpan)
            expect(!balance.isBalanced && !balance.isBalanced(around: key.byteSpan))
            balance.require(other.byteSpan)
            balance.find(key.byteSpan)
            expect(balance.isBalanced && balance.isBalanced(around: key.byteSpan))
        }
    }
}
