/// Which transactions of a history precede which.
///
/// Beside the transactions it has a node for each end of a transaction, in the order of time: all that have ended by
/// then precede it, and it precedes all that begin later. So the order of real time needs a few edges for each
/// transaction, not one for each pair.
struct PrecedenceGraph {
    enum Kind {
        /// An append right before another one.
        case writeWrite
        /// An append, and a read that ends with it.
        case writeRead
        /// A read, and the first append that it lacks.
        case readWrite
        /// An end, and a later beginning.
        case realTime
    }

    private struct Edge {
        let target: Int
        let kind: Kind
    }

    /// Nodes below it are transactions.
    private let transactionCount: Int
    private var edges: [[Edge]]

    /// - Parameters:
    ///   - writers: the transactions that have appended the elements.
    ///   - isStrict: whether the end of a transaction without appends precedes what begins later, too.
    init(_ history: ListAppendHistory, writers: [Int: Int], isStrict: Bool) {
        transactionCount = history.transactions.count
        edges = Array(repeating: [], count: transactionCount)
        for list in history.final.values { addOrder(of: list, writers) }
        for (index, transaction) in history.transactions.enumerated() where transaction.outcome == .committed {
            for read in transaction.reads { add(read, of: index, history.final[read.list] ?? [], writers) }
        }
        addRealTime(history, isStrict: isStrict)
    }

    private mutating func addEdge(_ source: Int, _ target: Int, _ kind: Kind) {
        if source != target { edges[source].append(Edge(target: target, kind: kind)) }
    }

    private mutating func addOrder(of list: [Int], _ writers: [Int: Int]) {
        for (element, next) in zip(list, list.dropFirst()) {
            if let writer = writers[element], let later = writers[next] { addEdge(writer, later, .writeWrite) }
        }
    }

    private mutating func add(
        _ read: ListAppendHistory.Read, of index: Int, _ final: [Int], _ writers: [Int: Int]
    ) {
        guard final.starts(with: read.elements) else { return }
        if let last = read.elements.last, let writer = writers[last] { addEdge(writer, index, .writeRead) }
        if read.elements.count < final.count, let writer = writers[final[read.elements.count]] {
            addEdge(index, writer, .readWrite)
        }
    }

    private mutating func addRealTime(_ history: ListAppendHistory, isStrict: Bool) {
        var events: [(time: UInt64, isEnd: Bool, transaction: Int)] = []
        for (index, transaction) in history.transactions.enumerated() where transaction.outcome != .aborted {
            events.append((transaction.invokedAt, false, index))
            // One with an unknown outcome may be applied at any time later.
            let isKnown = isStrict || !transaction.appends.isEmpty
            if transaction.outcome == .committed, isKnown { events.append((transaction.completedAt, true, index)) }
        }
        // What begins in the moment of an end is concurrent with it.
        events.sort { ($0.time, $0.isEnd ? 1 : 0) < ($1.time, $1.isEnd ? 1 : 0) }
        var last: Int?
        for event in events {
            guard event.isEnd else {
                if let last { addEdge(last, event.transaction, .realTime) }
                continue
            }
            edges.append([])
            let node = edges.count - 1
            addEdge(event.transaction, node, .realTime)
            if let last { addEdge(last, node, .realTime) }
            last = node
        }
    }

    // MARK: Cycles

    /// A shortest cycle of each strongly connected component: the kinds of its edges, and its transactions.
    func cycles() -> [(kinds: [Kind], transactions: [Int])] {
        components().compactMap { component in
            component.filter { $0 < transactionCount }.compactMap { cycle(through: $0, in: component) }
                .min { $0.kinds.count < $1.kinds.count }
        }
    }

    /// Components of more than one node, found with Tarjan's algorithm, without recursion.
    private func components() -> [Set<Int>] {
        var found: [Set<Int>] = []
        var (indices, lowest) = ([Int?](repeating: nil, count: edges.count), [Int](repeating: 0, count: edges.count))
        var (stack, isOnStack) = ([Int](), [Bool](repeating: false, count: edges.count))
        var count = 0
        for root in edges.indices where indices[root] == nil {
            var path: [(node: Int, next: Int)] = [(root, 0)]
            while let (node, next) = path.last {
                if next == 0 {
                    indices[node] = count
                    lowest[node] = count
                    count += 1
                    stack.append(node)
                    isOnStack[node] = true
                }
                if next < edges[node].count {
                    path[path.count - 1].next += 1
                    let target = edges[node][next].target
                    if let index = indices[target] {
                        if isOnStack[target] { lowest[node] = min(lowest[node], index) }
                    } else {
                        path.append((target, 0))
                        continue
                    }
                    if path[path.count - 1].next < edges[node].count { continue }
                }
                path.removeLast()
                if let parent = path.last?.node { lowest[parent] = min(lowest[parent], lowest[node]) }
                guard lowest[node] == indices[node], let start = stack.lastIndex(of: node) else { continue }
                for member in stack[start...] { isOnStack[member] = false }
                if stack.count - start > 1 { found.append(Set(stack[start...])) }
                stack.removeSubrange(start...)
            }
        }
        return found
    }

    /// A shortest way from a node back to itself.
    private func cycle(through start: Int, in component: Set<Int>) -> (kinds: [Kind], transactions: [Int])? {
        var parents: [Int: (node: Int, kind: Kind)] = [:]
        var frontier = [start]
        while !frontier.isEmpty {
            var next: [Int] = []
            for node in frontier {
                for edge in edges[node] where component.contains(edge.target) && parents[edge.target] == nil {
                    parents[edge.target] = (node, edge.kind)
                    if edge.target == start { return way(to: start, parents) }
                    next.append(edge.target)
                }
            }
            frontier = next
        }
        return nil
    }

    private func way(to start: Int, _ parents: [Int: (node: Int, kind: Kind)]) -> (kinds: [Kind], transactions: [Int]) {
        var (kinds, transactions) = ([Kind](), [Int]())
        var node = start
        while let parent = parents[node] {
            kinds.append(parent.kind)
            if parent.node < transactionCount { transactions.append(parent.node) }
            node = parent.node
            if node == start { break }
        }
        return (kinds.reversed(), transactions.reversed())
    }
}
