// The ordered rows of a view against a sorted array, and how many nodes a change makes.

import DocumentModel
import HearthClient
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20)))
struct RowTreeTests {
    private static func row(_ number: Int, _ version: Int64 = 0) -> ViewRow {
        let key = [UInt8(number >> 16 & 255), UInt8(number >> 8 & 255), UInt8(number & 255)]
        let time = TimestampValue(seconds: version, nanoseconds: 0)
        return ViewRow(
            key: key,
            content: SnapshotRow(
                name: "\(number)",
                document: VisibleDocument(StoredDocument(fields: [], createTime: time, updateTime: time))))
    }

    private static func depth(_ node: RowTree.Node?) -> Int {
        node.map { 1 + max(depth($0.left), depth($0.right)) } ?? 0
    }

    /// The nodes of a tree that are not among those of another.
    private static func nodes(of node: RowTree.Node?, except known: Set<ObjectIdentifier>) -> [RowTree.Node] {
        guard let node, !known.contains(ObjectIdentifier(node)) else { return [] }
        return [node] + nodes(of: node.left, except: known) + nodes(of: node.right, except: known)
    }

    @Test
    func `Random changes give the rows of a sorted array, a low tree, and leave earlier values as they were`() {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        var tree = RowTree()
        var model: [Int: Int64] = [:]
        var earlier: (rows: RowList, names: [String])?
        for step in 0..<3000 {
            // At first the tree grows, at last it shrinks.
            let number = generator.below(1000)
            if generator.below(3000) > step {
                tree.insert(Self.row(number, Int64(step)))
                model[number] = Int64(step)
            } else {
                tree.remove(Self.row(number).key)
                model[number] = nil
            }
            expectEqual(tree.position(of: Self.row(number).key), model.keys.count { $0 < number }, "seed \(seed)")
            guard step % 50 == 0 else { continue }
            let sorted = model.keys.sorted()
            let rows = RowList(tree)
            expectEqual(rows.map(\.name), sorted.map { "\($0)" }, "seed \(seed)")
            expect(rows.indices.allSatisfy { rows[$0].name == "\(sorted[$0])" }, "seed \(seed)")
            expectEqual(rows.map(\.document.updateTime.seconds), sorted.map { model[$0] }, "seed \(seed)")
            expect(rows.count == sorted.count && rows.isEmpty == sorted.isEmpty)
            var (limit, power) = (1, 1)
            while power < max(1, rows.count) { (limit, power) = (limit + 5, power * 4) }
            expect(Self.depth(tree.root) <= limit, "seed \(seed)")
            if let earlier { expectEqual(earlier.rows.map(\.name), earlier.names, "seed \(seed)") }
            earlier = (rows, rows.map(\.name))
        }
    }

    @Test
    func `A change among 100,000 rows makes fewer than 100 nodes`() {
        let before = RowTree((0..<100_000).map { Self.row($0 * 2) })
        let known = Set(Self.nodes(of: before.root, except: []).map { ObjectIdentifier($0) })
        expectEqual(known.count, 100_000)
        for number in [0, 77_777, 100_000, 199_998, 199_999] {
            var changed = before
            changed.insert(Self.row(number, 1))
            expect(Self.nodes(of: changed.root, except: known).count < 100)
            changed = before
            changed.remove(Self.row(number).key)
            expect(Self.nodes(of: changed.root, except: known).count < 100)
        }
    }
}
