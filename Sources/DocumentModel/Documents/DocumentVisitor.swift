// Visiting the fields of a document in place: what index extraction stands on.

/// Receives every field of a document, in the order of the canonical bytes.
package protocol DocumentVisitor: ~Copyable {
    /// A field of the document or of a nested map, before the fields inside it; a vector or a BSON value has none.
    ///
    /// - Parameters:
    ///   - name: the UTF-8 bytes of the field's name, lent.
    ///   - value: the bytes of its `Value` message, lent.
    ///   - depth: nested maps around it; 0 for a field of the document.
    /// - Returns: whether the fields inside a map are wanted.
    mutating func visit(name: RawSpan, value: RawSpan, depth: Int) -> Bool

    /// All fields inside the map last visited at `depth` have been visited.
    mutating func leave(depth: Int)
}

extension DocumentBytes {
    /// Calls a visitor for every field, through nested maps but not into arrays.
    ///
    /// For canonical bytes; malformed ones end the visit early and never trap.
    package static func visit<Visitor: DocumentVisitor & ~Copyable>(_ fields: RawSpan, with visitor: inout Visitor) {
        visit(entries: fields, depth: 0, with: &visitor)
    }

    private static func visit<Visitor: DocumentVisitor & ~Copyable>(
        entries bytes: RawSpan, depth: Int, with visitor: inout Visitor
    ) {
        var entries = MapEntries(bytes)
        while let entry = entries.next() {
            let wantsInside = visitor.visit(name: entry.key, value: entry.value, depth: depth)
            // Validated values do not nest deeper; the bound only keeps hostile bytes from the stack.
            guard wantsInside, depth < Limits.nestingDepth, let inside = plainMapEntries(of: entry.value) else {
                continue
            }
            visit(entries: inside, depth: depth + 1, with: &visitor)
            visitor.leave(depth: depth)
        }
    }
}
