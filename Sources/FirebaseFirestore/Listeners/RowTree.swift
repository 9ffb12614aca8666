// The rows of a view in order: an immutable balanced tree, so that snapshots share what has not changed.

import Basics
import DocumentModel

/// A row of a view. Two rows compare like their keys.
final class ViewRow: Sendable {
    /// Bytes that compare like the query's order; no two rows have the same.
    let key: [UInt8]
    let content: SnapshotRow

    init(key: [UInt8], content: SnapshotRow) {
        self.key = key
        self.content = content
    }
}

/// Rows in the order of their keys. A change makes O(log n) new nodes and leaves the others to earlier values.
///
/// A weight-balanced tree: the sizes of two subtrees, each plus one, differ by a factor of three at most. See Hirai and
/// Yamamoto, "Balancing weight-balanced trees", 2011, for the choice of the two parameters.
struct RowTree: Sendable {
    /// A node with its subtrees; never changed.
    final class Node: Sendable {
        let row: ViewRow
        let left: Node?
        let right: Node?
        let count: Int

        init(_ row: ViewRow, _ left: Node?, _ right: Node?) {
            self.row = row
            self.left = left
            self.right = right
            count = 1 + (left?.count ?? 0) + (right?.count ?? 0)
        }
    }

    private(set) var root: Node?

    init() {}

    /// - Parameter rows: in the order of their keys.
    init(_ rows: [ViewRow]) { root = Self.build(rows[...]) }

    private static func build(_ rows: ArraySlice<ViewRow>) -> Node? {
        if rows.isEmpty { return nil }
        let middle = rows.startIndex + rows.count / 2
        return Node(rows[middle], build(rows[..<middle]), build(rows[(middle + 1)...]))
    }

    var count: Int { root?.count ?? 0 }
    var isEmpty: Bool { root == nil }

    /// The row at a position.
    subscript(position: Int) -> ViewRow {
        precondition(position >= 0 && position < count, "a position beyond the rows")
        var (node, position) = (root, position)
        while let here = node {
            let before = here.left?.count ?? 0
            if position == before { return here.row }
            node = position < before ? here.left : here.right
            if position > before { position -= before + 1 }
        }
        preconditionFailure("a tree has as many rows as it counts")
    }

    /// The number of rows before a key.
    func position(of key: [UInt8]) -> Int {
        var (node, position) = (root, 0)
        while let here = node {
            if here.row.key.precedes(key) {
                position += 1 + (here.left?.count ?? 0)
                node = here.right
            } else {
                node = here.left
            }
        }
        return position
    }

    /// Adds a row, or replaces the one with its key.
    mutating func insert(_ row: ViewRow) { root = Self.inserting(row, in: root) }

    /// Removes the row with a key, if there is one.
    mutating func remove(_ key: [UInt8]) { root = Self.removing(key, from: root) }

    // MARK: Nodes

    private static func inserting(_ row: ViewRow, in node: Node?) -> Node {
        guard let node else { return Node(row, nil, nil) }
        let order = row.key.order(to: node.row.key)
        if order == 0 { return Node(row, node.left, node.right) }
        return order < 0
            ? balanced(node.row, inserting(row, in: node.left), node.right)
            : balanced(node.row, node.left, inserting(row, in: node.right))
    }

    private static func removing(_ key: [UInt8], from node: Node?) -> Node? {
        guard let node else { return nil }
        let order = key.order(to: node.row.key)
        if order == 0 { return joined(node.left, node.right) }
        return order < 0
            ? balanced(node.row, removing(key, from: node.left), node.right)
            : balanced(node.row, node.left, removing(key, from: node.right))
    }

    /// Two balanced trees of about the same size, the first before the second.
    private static func joined(_ left: Node?, _ right: Node?) -> Node? {
        guard let left else { return right }
        guard let right else { return left }
        if left.count > right.count {
            let (rest, last) = removingLast(left)
            return balanced(last, rest, right)
        }
        let (first, rest) = removingFirst(right)
        return balanced(first, left, rest)
    }

    private static func removingFirst(_ node: Node) -> (ViewRow, Node?) {
        guard let left = node.left else { return (node.row, node.right) }
        let (first, rest) = removingFirst(left)
        return (first, balanced(node.row, rest, node.right))
    }

    private static func removingLast(_ node: Node) -> (Node?, ViewRow) {
        guard let right = node.right else { return (node.left, node.row) }
        let (rest, last) = removingLast(right)
        return (balanced(node.row, node.left, rest), last)
    }

    private static func weight(_ node: Node?) -> Int { 1 + (node?.count ?? 0) }

    /// A node of which one subtree may be a little too large.
    private static func balanced(_ row: ViewRow, _ left: Node?, _ right: Node?) -> Node {
        if let right, weight(right) > 3 * weight(left) {
            guard let inner = right.left, weight(inner) >= 2 * weight(right.right) else {
                return Node(right.row, Node(row, left, right.left), right.right)
            }
            return Node(inner.row, Node(row, left, inner.left), Node(right.row, inner.right, right.right))
        }
        if let left, weight(left) > 3 * weight(right) {
            guard let inner = left.right, weight(inner) >= 2 * weight(left.left) else {
                return Node(left.row, left.left, Node(row, left.right, right))
            }
            return Node(inner.row, Node(left.row, left.left, inner.left), Node(row, inner.right, right))
        }
        return Node(row, left, right)
    }
}

extension [UInt8] {
    /// Negative, zero or positive: how the bytes compare.
    fileprivate func order(to other: [UInt8]) -> Int { Int(byteSpan.compareBytes(other.byteSpan)) }

    /// Whether the bytes compare less than others.
    func precedes(_ other: [UInt8]) -> Bool { order(to: other) < 0 }
}

/// The rows of a snapshot, in order. An immutable value: views share what does not change.
struct RowList: Sendable, RandomAccessCollection {
    private enum Storage {
        case array([SnapshotRow])
        case tree(RowTree)
    }

    private let storage: Storage

    init(_ rows: [SnapshotRow]) { storage = .array(rows) }
    init(_ tree: RowTree) { storage = .tree(tree) }

    var startIndex: Int { 0 }

    var endIndex: Int {
        switch storage {
        case .array(let rows): rows.count
        case .tree(let tree): tree.count
        }
    }

    /// O(log n).
    subscript(position: Int) -> SnapshotRow {
        switch storage {
        case .array(let rows): rows[position]
        case .tree(let tree): tree[position].content
        }
    }

    func makeIterator() -> Iterator {
        switch storage {
        case .array(let rows): Iterator(rows: rows[...])
        case .tree(let tree): Iterator(node: tree.root)
        }
    }

    /// Visits all rows in a time in proportion to their number.
    struct Iterator: IteratorProtocol {
        private var rows: ArraySlice<SnapshotRow> = []
        /// The nodes whose left subtrees are done.
        private var path: [RowTree.Node] = []

        fileprivate init(rows: ArraySlice<SnapshotRow>) { self.rows = rows }

        fileprivate init(node: RowTree.Node?) { descend(node) }

        private mutating func descend(_ node: RowTree.Node?) {
            var next = node
            while let node = next {
                path.append(node)
                next = node.left
            }
        }

        mutating func next() -> SnapshotRow? {
            guard let node = path.popLast() else { return rows.popFirst() }
            descend(node.right)
            return node.row.content
        }
    }
}
