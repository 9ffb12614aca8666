// Histories of transactions that read lists and append to them, in the form that Elle takes.
//
// An element is appended once in a history. So a list shows the order of the transactions that have appended to it, and
// a read shows which of them came before.

/// What clients did, and what came of it.
struct ListAppendHistory: Sendable {
    enum Outcome: String, Sendable {
        case committed = "ok"
        /// Nothing of it was applied.
        case aborted = "fail"
        case unknown = "info"
    }

    struct Read: Sendable, Equatable {
        var list: Int
        var elements: [Int]
    }

    struct Append: Sendable, Equatable {
        var list: Int
        var element: Int
    }

    /// A transaction: first it reads, then it appends.
    struct Transaction: Sendable {
        /// The client.
        var process: Int
        /// Nanoseconds of one clock.
        var invokedAt: UInt64
        var completedAt: UInt64
        /// Lists that it has read or was about to read, in order.
        var reads: [Read] = []
        var appends: [Append] = []
        var outcome: Outcome
        /// The servers of its calls, for people.
        var servers: [Int] = []
    }

    var transactions: [Transaction] = []
    /// All lists at the end, read when nothing was under way.
    var final: [Int: [Int]] = [:]

    // MARK: Elle's form

    /// One operation a line, in EDN, in the order of their times: each transaction is invoked, and then ends. A client
    /// whose transaction has an unknown outcome continues as another process.
    var edn: String {
        struct Event {
            var time: UInt64
            var isEnd: Bool
            var transaction: Int
        }
        var events: [Event] = []
        for (index, transaction) in transactions.enumerated() {
            events.append(Event(time: transaction.invokedAt, isEnd: false, transaction: index))
            events.append(Event(time: transaction.completedAt, isEnd: true, transaction: index))
        }
        events.sort { ($0.time, $0.isEnd ? 0 : 1) < ($1.time, $1.isEnd ? 0 : 1) }
        let clients = (transactions.map(\.process).max() ?? 0) + 1
        var processes: [Int: Int] = [:]
        var lines: [String] = []
        for (index, event) in events.enumerated() {
            let transaction = transactions[event.transaction]
            let process = processes[transaction.process] ?? transaction.process
            let type = event.isEnd ? transaction.outcome.rawValue : "invoke"
            let value = transaction.edn(withResults: event.isEnd && transaction.outcome == .committed)
            lines.append(
                "{:index \(index), :type :\(type), :process \(process), :time \(event.time), :f :txn, :value \(value)}")
            if event.isEnd, transaction.outcome == .unknown { processes[transaction.process] = process + clients }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

extension ListAppendHistory.Transaction: CustomStringConvertible {
    fileprivate func edn(withResults: Bool) -> String {
        let reads = reads.map { read in
            let elements = read.elements.map(String.init).joined(separator: " ")
            return "[:r \(read.list) \(withResults ? "[\(elements)]" : "nil")]"
        }
        let appends = appends.map { "[:append \($0.list) \($0.element)]" }
        return "[\((reads + appends).joined(separator: " "))]"
    }

    var description: String {
        "process \(process) at servers \(servers), \(invokedAt)-\(completedAt) ns, \(outcome.rawValue): "
            + edn(withResults: outcome == .committed)
    }
}
