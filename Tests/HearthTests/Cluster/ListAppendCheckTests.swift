// The checker of histories finds what is planted, and nothing in histories of one database that is one.

import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ListAppendCheckTests {
    private typealias Transaction = ListAppendHistory.Transaction

    /// A transaction with the times of its call.
    private static func transaction(
        _ times: ClosedRange<UInt64>, reads: [(Int, [Int])] = [], appends: [(Int, Int)] = [],
        _ outcome: ListAppendHistory.Outcome = .committed
    ) -> Transaction {
        Transaction(
            process: 0, invokedAt: times.lowerBound, completedAt: times.upperBound,
            reads: reads.map { ListAppendHistory.Read(list: $0.0, elements: $0.1) },
            appends: appends.map { ListAppendHistory.Append(list: $0.0, element: $0.1) }, outcome: outcome)
    }

    private static func anomalies(_ transactions: [Transaction], _ final: [Int: [Int]]) -> [ListAppendAnomaly] {
        ListAppendCheck.anomalies(of: ListAppendHistory(transactions: transactions, final: final))
    }

    private static func kinds(_ transactions: [Transaction], _ final: [Int: [Int]]) -> [String] {
        anomalies(transactions, final).map { if case .cycle(let kind, _) = $0 { kind } else { "\($0)" } }
    }

    @Test
    func `Elements that are lost, repeated, aborted, unknown or there in part are found`() {
        let both = Self.transaction(1...2, appends: [(1, 1), (2, 2)])
        expectEqual(Self.anomalies([both], [1: [1], 2: [2]]), [])
        expectEqual(Self.anomalies([both], [1: [1]]), [.lost(element: 2), .partial(transaction: 0)])
        expectEqual(Self.anomalies([both], [1: [1, 1], 2: [2]]), [.repeated(element: 1)])
        expectEqual(Self.anomalies([both], [1: [1], 2: [2, 9]]), [.unknown(element: 9)])
        let aborted = Self.transaction(1...2, appends: [(1, 1)], .aborted)
        expectEqual(Self.anomalies([aborted], [:]), [])
        expectEqual(Self.anomalies([aborted], [1: [1]]), [.abortedVisible(element: 1)])
        let unknown = Self.transaction(1...2, appends: [(1, 1), (2, 2)], .unknown)
        expectEqual(Self.anomalies([unknown], [:]), [])
        expectEqual(Self.anomalies([unknown], [1: [1], 2: [2]]), [])
        expectEqual(Self.anomalies([unknown], [2: [2]]), [.partial(transaction: 0)])
    }

    @Test
    func `Reads of what a list never was are found`() {
        let writes = [Self.transaction(1...9, appends: [(1, 1), (1, 2)]), Self.transaction(1...9, appends: [(1, 3)])]
        let final = [1: [1, 2, 3]]
        expectEqual(Self.anomalies(writes + [Self.transaction(1...9, reads: [(1, [1, 2])])], final), [])
        expectEqual(
            Self.anomalies(writes + [Self.transaction(1...9, reads: [(1, [2])])], final),
            [.noPrefix(transaction: 2, list: 1)])
        let middle = Self.anomalies(writes + [Self.transaction(1...9, reads: [(1, [1])])], final)
        expect(middle.contains(.intermediate(transaction: 2, list: 1)))
    }

    @Test
    func `Each kind of cycle is found`() {
        let first = Self.transaction(1...9, appends: [(1, 1), (2, 2)])
        let second = Self.transaction(1...9, appends: [(1, 3), (2, 4)])
        expectEqual(Self.kinds([first, second], [1: [1, 3], 2: [2, 4]]), [])
        expectEqual(Self.kinds([first, second], [1: [1, 3], 2: [4, 2]]), ["G0"])
        // Each has read what the other has appended.
        expectEqual(
            Self.kinds(
                [
                    Self.transaction(1...9, reads: [(2, [2])], appends: [(1, 1)]),
                    Self.transaction(1...9, reads: [(1, [1])], appends: [(2, 2)]),
                ], [1: [1], 2: [2]]), ["G1c"])
        // One append of a transaction is seen and the other one is not.
        expectEqual(
            Self.kinds([first, Self.transaction(1...9, reads: [(1, [1]), (2, [])])], [1: [1], 2: [2]]), ["G-single"])
        // Write skew.
        expectEqual(
            Self.kinds(
                [
                    Self.transaction(1...9, reads: [(1, []), (2, [])], appends: [(1, 1)]),
                    Self.transaction(1...9, reads: [(1, []), (2, [])], appends: [(2, 2)]),
                ], [1: [1], 2: [2]]), ["G2"])
    }

    @Test
    func `A read that is older than what was acknowledged before is found, and a concurrent one is none`() {
        let write = Self.transaction(1...4, appends: [(1, 1)])
        expectEqual(Self.kinds([write, Self.transaction(5...6, reads: [(1, [])])], [1: [1]]), ["G-single-realtime"])
        expectEqual(Self.kinds([write, Self.transaction(4...6, reads: [(1, [])])], [1: [1]]), [])
        // Read, and later not read.
        expectEqual(
            Self.kinds(
                [
                    Self.transaction(1...9, appends: [(1, 1)], .unknown), Self.transaction(2...3, reads: [(1, [1])]),
                    Self.transaction(5...6, reads: [(1, [])]),
                ], [1: [1]]), ["G-single-realtime"])
        // Only a strict history forbids that if nothing was acknowledged.
        let unacknowledged = ListAppendHistory(
            transactions: [
                Self.transaction(1...9, appends: [(1, 1)]), Self.transaction(2...3, reads: [(1, [1])]),
                Self.transaction(5...6, reads: [(1, [])]),
            ], final: [1: [1]])
        expectEqual(ListAppendCheck.anomalies(of: unacknowledged).count, 1)
        expectEqual(ListAppendCheck.anomalies(of: unacknowledged, isStrict: false), [])
        let stale = ListAppendHistory(
            transactions: [write, Self.transaction(5...6, reads: [(1, [])])], final: [1: [1]])
        expectEqual(ListAppendCheck.anomalies(of: stale, isStrict: false).count, 1)
        // Appends in the wrong order of time.
        expectEqual(Self.kinds([write, Self.transaction(5...6, appends: [(1, 2)])], [1: [2, 1]]), ["G0-realtime"])
        // One with an unknown outcome may come at any later time.
        expectEqual(
            Self.kinds(
                [
                    Self.transaction(1...2, appends: [(1, 1)], .unknown), Self.transaction(3...4, reads: [(1, [])]),
                    Self.transaction(5...6, reads: [(1, [1])]),
                ], [1: [1]]), [])
    }

    /// Transactions on plain arrays, one after the other, each at a moment within its call.
    private static func serial(seed: UInt64, count: Int) -> ListAppendHistory {
        var random = SeededGenerator(seed: seed)
        var history = ListAppendHistory()
        for index in 0..<count {
            let moment = UInt64(index) * 10 + 1_000
            var transaction = transaction(
                (moment - UInt64(random.below(200)))...(moment + UInt64(random.below(200))),
                random.oneIn(10) ? .unknown : .committed)
            transaction.process = index % 5
            for list in Set((0..<random.below(3)).map { _ in random.below(4) }) {
                transaction.reads.append(.init(list: list, elements: history.final[list] ?? []))
            }
            for number in 0..<random.below(3) {
                let append = ListAppendHistory.Append(list: random.below(4), element: index * 10 + number)
                transaction.appends.append(append)
                history.final[append.list, default: []].append(append.element)
            }
            history.transactions.append(transaction)
        }
        return history
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `Serial histories have no anomaly, and one with a stale read has`(seed: UInt64) throws {
        var history = Self.serial(seed: seed, count: 600)
        expectEqual(ListAppendCheck.anomalies(of: history), [])
        let last = try #require(history.transactions.last?.completedAt)
        let list = try #require(history.final.keys.min())
        let elements = try #require(history.final[list])
        history.transactions.append(
            Self.transaction((last + 1_000)...(last + 2_000), reads: [(list, Array(elements.dropLast()))]))
        expectEqual(ListAppendCheck.anomalies(of: history).count, 1)
    }

    @Test
    func `A history is written in the form of Elle`() {
        let history = ListAppendHistory(
            transactions: [
                Self.transaction(1...4, reads: [(7, [1, 2])], appends: [(8, 3)]),
                Self.transaction(2...3, appends: [(7, 5)], .unknown),
                Self.transaction(5...6, reads: [(7, [])], .aborted),
            ], final: [:])
        expectEqual(
            history.edn,
            """
            {:index 0, :type :invoke, :process 0, :time 1, :f :txn, :value [[:r 7 nil] [:append 8 3]]}
            {:index 1, :type :invoke, :process 0, :time 2, :f :txn, :value [[:append 7 5]]}
            {:index 2, :type :info, :process 0, :time 3, :f :txn, :value [[:append 7 5]]}
            {:index 3, :type :ok, :process 1, :time 4, :f :txn, :value [[:r 7 [1 2]] [:append 8 3]]}
            {:index 4, :type :invoke, :process 1, :time 5, :f :txn, :value [[:r 7 nil]]}
            {:index 5, :type :fail, :process 1, :time 6, :f :txn, :value [[:r 7 nil]]}

            """)
    }
}
