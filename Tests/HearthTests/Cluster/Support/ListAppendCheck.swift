// Whether a history of lists is strictly serializable.
//
//     the final lists ──► the order of appends ──► ww, wr, rw ──►┐
//     times of calls  ──► who ended before another began ──► rt ─┴──► a cycle is an anomaly
//
// The method is Elle's (Kingsbury and Alvaro, VLDB 2020): an order of the transactions that explains all reads and
// agrees with real time exists if and only if no transaction precedes itself. The final lists are known, so all orders
// of appends are.

/// What contradicts an order of transactions.
enum ListAppendAnomaly: Equatable, CustomStringConvertible {
    /// An acknowledged append is not in its list.
    case lost(element: Int)
    /// An append is in its list more than once.
    case repeated(element: Int)
    /// A transaction that failed has left an append, or another one has read it (Adya's G1a).
    case abortedVisible(element: Int)
    /// Some appends of a transaction are there, and others are not.
    case partial(transaction: Int)
    /// A read has elements that are not the beginning of the final list.
    case noPrefix(transaction: Int, list: Int)
    /// A read has an element, and lacks a later one that the same transaction appended to the same list (G1b).
    case intermediate(transaction: Int, list: Int)
    /// An element that nobody has appended.
    case unknown(element: Int)
    /// Transactions that precede each other. The kind is Adya's, with `-realtime` if it needs the order of calls.
    case cycle(kind: String, transactions: [Int])

    var description: String {
        switch self {
        case .lost(let element): "the acknowledged element \(element) is lost"
        case .repeated(let element): "element \(element) is there more than once"
        case .abortedVisible(let element): "element \(element) of a failed transaction is visible"
        case .partial(let transaction): "transaction \(transaction) is there in part"
        case .noPrefix(let transaction, let list): "transaction \(transaction) has read what list \(list) never was"
        case .intermediate(let transaction, let list):
            "transaction \(transaction) has read list \(list) in the middle of another transaction"
        case .unknown(let element): "nobody has appended element \(element)"
        case .cycle(let kind, let transactions): "\(kind): transactions \(transactions) precede each other"
        }
    }
}

/// Checks one history.
struct ListAppendCheck {
    private let history: ListAppendHistory
    private var writers: [Int: Int] = [:]
    private(set) var anomalies: [ListAppendAnomaly] = []

    /// All anomalies of a history; of several cycles through the same transactions one.
    ///
    /// - Parameter isStrict: whether the history must be strictly serializable. Otherwise it must be serializable, and
    ///   each transaction must see what was acknowledged before it began.
    static func anomalies(of history: ListAppendHistory, isStrict: Bool = true) -> [ListAppendAnomaly] {
        var check = ListAppendCheck(history)
        check.checkElements()
        check.checkReads()
        check.checkCycles(isStrict: isStrict)
        return check.anomalies
    }

    private init(_ history: ListAppendHistory) {
        self.history = history
        for (index, transaction) in history.transactions.enumerated() {
            for append in transaction.appends {
                precondition(writers.updateValue(index, forKey: append.element) == nil, "an element is appended once")
            }
        }
    }

    // MARK: Elements

    private mutating func checkElements() {
        var present: Set<Int> = []
        for element in history.final.sorted(by: { $0.key < $1.key }).flatMap(\.value) {
            if !present.insert(element).inserted { anomalies.append(.repeated(element: element)) }
            guard let writer = writers[element] else {
                anomalies.append(.unknown(element: element))
                continue
            }
            if history.transactions[writer].outcome == .aborted { anomalies.append(.abortedVisible(element: element)) }
        }
        for (index, transaction) in history.transactions.enumerated() {
            let missing = transaction.appends.filter { !present.contains($0.element) }
            if transaction.outcome == .committed { anomalies += missing.map { .lost(element: $0.element) } }
            if !missing.isEmpty, missing.count < transaction.appends.count {
                anomalies.append(.partial(transaction: index))
            }
        }
    }

    // MARK: Reads

    private mutating func checkReads() {
        for (index, transaction) in history.transactions.enumerated() where transaction.outcome == .committed {
            for read in transaction.reads { check(read, of: index) }
        }
    }

    private mutating func check(_ read: ListAppendHistory.Read, of index: Int) {
        let final = history.final[read.list] ?? []
        guard final.starts(with: read.elements) else {
            return anomalies.append(.noPrefix(transaction: index, list: read.list))
        }
        guard let last = read.elements.last, read.elements.count < final.count, let writer = writers[last] else {
            return
        }
        if writers[final[read.elements.count]] == writer {
            anomalies.append(.intermediate(transaction: index, list: read.list))
        }
    }

    // MARK: Cycles

    private mutating func checkCycles(isStrict: Bool) {
        let graph = PrecedenceGraph(history, writers: writers, isStrict: isStrict)
        for (kinds, transactions) in graph.cycles() {
            anomalies.append(.cycle(kind: Self.name(kinds), transactions: transactions))
        }
    }

    private static func name(_ kinds: [PrecedenceGraph.Kind]) -> String {
        let realTime = kinds.contains(.realTime) ? "-realtime" : ""
        switch kinds.count(where: { $0 == .readWrite }) {
        case 0: return (kinds.contains(.writeRead) ? "G1c" : "G0") + realTime
        case 1: return "G-single" + realTime
        default: return "G2" + realTime
        }
    }
}
