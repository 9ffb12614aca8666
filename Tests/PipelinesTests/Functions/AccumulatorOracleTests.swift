// Accumulators over rows and over documents, against totals that are computed in the simplest way.

import Basics
import DocumentModel
import ServiceTestSupport
import TestSupport
import Testing

@testable import Pipelines

@Suite(.timeLimit(.minutes(20)))
struct AccumulatorOracleTests {
    private typealias Naive = NaiveEvaluator

    private static let values: [Value?] = {
        let values: [Value] =
            [.null, true, false] + Naive.numberValues.filter { $0 != .double(1e308) } + Naive.texts + Naive.byteValues
            + Naive.arrayValues.filter { $0 != [true, nil, 7, "x", [1]] } + Naive.mapValues + Naive.vectorValues
        return [nil, nil] + values.map { $0 }
    }()

    /// What an accumulator comes to.
    private static func total(_ kind: Accumulator.Kind, _ values: [Value?]) -> Value {
        let present = values.compactMap { $0 }.filter { !Naive.isNull($0) }
        let numbers = present.filter { Naive.double($0) != nil }
        var distinct: [Value] = []
        for value in values.map({ $0 ?? .null }) where !distinct.contains(where: { Naive.same($0, value) }) {
            distinct.append(value)
        }
        switch kind {
        case .count: return .integer(Int64(present.count))
        case .countIf: return .integer(Int64(present.count { $0 == true }))
        case .countDistinct: return .integer(Int64(distinct.count { !Naive.isNull($0) }))
        case .sum: return sum(numbers)
        case .average:
            return numbers.isEmpty ? .null : .double((Naive.double(sum(numbers)) ?? 0) / Double(numbers.count))
        case .minimum:
            return present.reduce(nil) { best, value in
                best.map { Naive.total(value, $0) < 0 ? value : $0 } ?? value
            } ?? .null
        case .maximum:
            return present.reduce(nil) { best, value in
                best.map { Naive.total(value, $0) > 0 ? value : $0 } ?? value
            } ?? .null
        case .first: return (values.first ?? nil) ?? .null
        case .last: return (values.last ?? nil) ?? .null
        case .arrayAgg: return .array(values.map { $0 ?? .null })
        case .arrayAggDistinct: return .array(distinct)
        }
    }

    /// Integers exactly, in as many bits as they need.
    private static func sum(_ numbers: [Value]) -> Value {
        var (integers, doubles, hasDouble) = (Int128(0), 0.0, false)
        for number in numbers {
            switch number {
            case .integer(let number): integers += Int128(number)
            case .double(let number): (doubles, hasDouble) = (doubles + number, true)
            default: break
            }
        }
        if !hasDouble, let total = Int64(exactly: integers) { return .integer(total) }
        return .double(doubles + Double(integers))
    }

    private static func agrees(_ found: Value?, _ expected: Value) -> Bool {
        guard let found else { return false }
        if case .double(let left) = found, case .double(let right) = expected, left.isFinite {
            return (left - right).magnitude <= 1e-9 * max(1, right.magnitude)
        }
        switch (found, expected) {
        case (.integer, .double), (.double, .integer): return false
        default: return Naive.same(found, expected)
        }
    }

    @Test(arguments: 0..<12 as Range<UInt64>)
    func `Totals and groups agree with the simplest computation, over rows and over documents`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let harness = try Harness()
        let groups: [Value?] = [nil, .null, 1, 1.0, "x", .double(.nan), 0, .double(-0.0), [1], ["a": 1]]
        var rows: [(group: Value?, value: Value?)] = []
        var writes = try harness.emptyWrites()
        for index in 0..<60 {
            let group = groups[random.below(groups.count)]
            // Many seeds have numbers alone, so that sums are of many.
            let all = seed % 3 == 0 ? Naive.numberValues.prefix(16).map { Optional($0) } : Self.values
            let value = all[random.below(all.count)]
            rows.append((group, value))
            let fields = MapValue(
                [("g", group), ("v", value), ("z", .integer(1))].compactMap { name, value in
                    value.map { (name, $0) }
                })
            try Harness.name("c/\(100 + index)").withUTF8Span {
                try writes.update($0, fields: fields.documentBytes.byteSpan)
            }
        }
        try harness.commit(writes)
        let kinds = Accumulator.Kind.allCases
        let totals = kinds.map { ($0.rawValue, Expression.call($0.rawValue, .field("v"))) }
        let aggregate = Stage.aggregate(totals + [("rows", .call("count", []))], by: [("g", .field("g"))])
        let changesNothing = Stage("remove_fields", [.field("none")])
        for stages in [[aggregate], [changesNothing, aggregate], [.where(.call("equal", .field("z"), 1)), aggregate]] {
            let found = try harness.execute(structuredPipeline([.collection("c")] + stages)).rows
            var seen = 0
            for row in found {
                let members = rows.filter { Naive.same($0.group, row["g"]) }
                seen += members.count
                expectEqual(row["rows"], .integer(Int64(members.count)))
                for kind in kinds {
                    let expected = Self.total(kind, members.map(\.value))
                    expect(
                        Self.agrees(row[kind.rawValue], expected),
                        "\(kind) of \(members): \(String(describing: row[kind.rawValue])), not \(expected)")
                }
            }
            expect(seen == rows.count && found.count == Set(found.map { "\(String(describing: $0["g"]))" }).count)
        }
        let counted = try harness.execute(.collection("c"), .aggregate([("n", .call("count", []))]))
        expectEqual(counted.rows, [["n": 60]])
    }
}
