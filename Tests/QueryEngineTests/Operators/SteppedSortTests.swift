// Sorts in steps, and the lists of searches that need them.

import Basics
import DocumentModel
import Indexing
import StoreTestSupport
import TestSupport
import Testing
import TextAnalysis

@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct SteppedSortTests {
    @Test(arguments: UInt64(1)..<4)
    func `Every list is sorted, equal elements keep their order, and a step does what its budget permits`(
        seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed)
        for count in 0..<200 {
            let list = (0..<count).map { _ in random.below(1 + random.below(count)) }
            var sort = SteppedSort(count: count)
            let budgetOfStep = 1 + random.below(20)
            var comparisons = 0
            repeat {
                let before = comparisons
                var budget = budgetOfStep
                let isDone = sort.advance(&budget) {
                    comparisons += 1
                    return list[$0] < list[$1]
                }
                expect(isDone == sort.isDone && budget >= 0, "seed \(seed), \(count) elements")
                expect(comparisons - before <= budgetOfStep * SteppedSort.comparisonsPerDocument)
            } while !sort.isDone
            expectEqual(sort.order, (0..<count).sorted { (list[$0], $0) < (list[$1], $1) }, "seed \(seed)")
        }
    }

    @Test
    func `A query sorts rows in steps`() throws {
        let documents = (0..<3_000).map { number in
            TestDocument(path: "c/d\(number)", fields: ["n": .integer(Int64(number * 7_919 % 3_001))])
        }
        let orders = [Order(field: try FieldPath("n"), direction: .descending)]
        // All rows, the first ones, and as many as fit, in several passes.
        for (wanted, bytes) in [(Int.max, 1 << 30), (2_000, 1 << 30), (Int.max, 400_000)] {
            var sort = Sort(
                ArrayRows(documents), by: .orders(orders), wanted: wanted, keeping: nil, bytesMax: bytes)
            var (numbers, steps, stepsWithRows): ([Int64], Int, Int) = ([], 0, 0)
            while !sort.isFinished {
                let before = numbers.count
                var work = StepWork(budget: 100)
                try sort.next(from: MemorySource([]), &work) { (row) throws(RequestError) in
                    if case .integer(let number)? = try TestDocument(row).fields["n"] { numbers.append(number) }
                    return .more
                }
                steps += 1
                if numbers.count > before { stepsWithRows += 1 }
            }
            expect(numbers.count == min(wanted, 3_000) && numbers == numbers.sorted(by: >))
            // 2,000 rows are 22,000 comparisons.
            expect(steps - stepsWithRows > 30 + 20, "\(steps) steps, \(stepsWithRows) with rows")
        }
    }

    // MARK: Searches

    @Test
    func `The entries of a search are sorted in steps`() {
        var random = SeededGenerator(seed: 1)
        let ids = (0..<5_000).map { _ in Array("d\(random.below(4_000))".utf8) }
        var list = PostingList()
        for (number, id) in ids.enumerated() {
            list.append(id.byteSpan, onlyItself: false, Array("\(number)".utf8).byteSpan)
        }
        var steps = 1
        var budget = 100
        while !list.sort(&budget) {
            expectEqual(budget, 0)
            budget = 100
            steps += 1
        }
        // 13 passes of 5,000 comparisons.
        expect(steps > 60)
        let sorted = ids.map { String(decoding: $0, as: UTF8.self) }.sorted()
        expectEqual((0..<list.count).map { String(decoding: list.document($0), as: UTF8.self) }, sorted)
        expectEqual(list.documentCount, Set(ids).count)
    }

    /// An entry of a word that is at each place of a field.
    private static func posting(_ count: Int) -> [UInt8] {
        var writer = ByteBuffer(capacity: count + 16)
        for number in [0, 0, count, count] { writer.appendVarint(UInt64(number)) }
        for place in 0..<count { writer.appendVarint(place == 0 ? 0 : 2) }
        return writer.copyBytes()
    }

    @Test(arguments: ["fox", "\"fox fox\""])
    func `A word that occurs often in large documents takes fuel by its places`(text: String) throws {
        let tree = try SearchTree(try TextQuery(text), .english)
        let lists = tree.leaves.map { _ in
            var list = PostingList()
            for number in 10..<60 {
                list.append(Array("d\(number)".utf8).byteSpan, onlyItself: false, Self.posting(20_000).byteSpan)
            }
            return list
        }
        var matching = SearchMatching(tree, lists, SearchCounts(fields: 1))
        var found: [[UInt8]] = []
        var (target, steps, isEnded): ([UInt8], Int, Bool) = ([], 0, false)
        while !isEnded {
            matching.fuel = 100
            steps += 1
            while matching.fuel > 0, !isEnded {
                switch matching.next(from: target) {
                case .nothing: isEnded = true
                case .paused(let place):
                    target = place
                    matching.fuel = 0
                case .document(let document):
                    expect(matching.score(of: document) > 0)
                    found.append(document)
                    target = document + [0]
                }
            }
        }
        expectEqual(found, (10..<60).map { Array("d\($0)".utf8) })
        expect(steps >= 50, "\(steps) steps")
    }
}
