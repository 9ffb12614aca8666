// Documents of test databases, and the order of their paths.

package import DocumentModel

/// One document of a test database.
package struct TestDocument: Sendable, Equatable {
    /// Below `documents`.
    package var path: String
    package var fields: MapValue
    package var createMicroseconds: UInt64 = 1
    package var updateMicroseconds: UInt64 = 2

    package init(path: String, fields: MapValue, createMicroseconds: UInt64 = 1, updateMicroseconds: UInt64 = 2) {
        self.path = path
        self.fields = fields
        self.createMicroseconds = createMicroseconds
        self.updateMicroseconds = updateMicroseconds
    }

    package var segments: [String] { path.split(separator: "/").map(String.init) }
    package var collection: String { segments.dropLast().joined(separator: "/") }
    package var id: String { segments.last ?? "" }
}

/// Order of two relative paths, restated from the rules: ids one by one, numeric ones first, a prefix first.
package func pathOrder(_ left: String, _ right: String) -> Int {
    func number(_ id: Substring) -> Int64? {
        id.hasPrefix("__id") && id.hasSuffix("__") ? Int64(id.dropFirst(4).dropLast(2)) : nil
    }
    let lefts = left.split(separator: "/")
    let rights = right.split(separator: "/")
    for (left, right) in zip(lefts, rights) {
        switch (number(left), number(right)) {
        case (let left?, let right?): if left != right { return left < right ? -1 : 1 }
        case (_?, nil): return -1
        case (nil, _?): return 1
        case (nil, nil):
            if Array(left.utf8) != Array(right.utf8) { return left.utf8.lexicographicallyPrecedes(right.utf8) ? -1 : 1 }
        }
    }
    return lefts.count - rights.count
}

package let testDatabase = "projects/p/databases/d"
package let testRoot = "\(testDatabase)/documents"
