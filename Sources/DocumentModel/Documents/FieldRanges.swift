// Finding many fields of a document in one walk.

internal import Basics

/// Where fields stand in a document's bytes.
///
/// Looking fields up one by one costs the product of fields wanted and fields there; this costs their sum, whatever a
/// hostile mask contains.
package enum FieldRanges {
    /// The range of each path's `Value` message in `fields`, in the order of the paths; nil where a field is absent.
    package static func locate(_ paths: [FieldPath], in fields: RawSpan) throws(InvalidDocument) -> [Range<Int>?] {
        if paths.count == 1 {
            guard let value = DocumentBytes.value(at: paths[0], in: fields) else { return [nil] }
            return [fields.byteOffsets(of: value)]
        }
        var search = Search(paths: paths)
        try search.run(0..<paths.count, depth: 0, entries: fields, document: fields)
        return search.found
    }

    private static func isSorted(_ paths: [FieldPath]) -> Bool {
        for index in paths.indices.dropFirst() where paths[index].precedes(paths[index - 1]) { return false }
        return true
    }

    private struct Search {
        let paths: [FieldPath]
        /// Indices of `paths`, sorted by path.
        let order: [Int]
        var found: [Range<Int>?]

        init(paths: [FieldPath]) {
            self.paths = paths
            order =
                FieldRanges.isSorted(paths)
                ? Array(paths.indices) : paths.indices.sorted { paths[$0].precedes(paths[$1]) }
            found = Array(repeating: nil, count: paths.count)
        }

        /// Merges the entries of a map with the paths that lead through it; both are sorted.
        mutating func run(
            _ range: Range<Int>, depth: Int, entries: RawSpan, document: RawSpan
        ) throws(InvalidDocument) {
            var reader = FieldEntryReader(entries)
            guard try reader.next() else { return }
            var next = range.lowerBound
            while next < range.upperBound {
                let name = paths[order[next]].utf8Segments[depth]
                var end = next + 1
                while end < range.upperBound, paths[order[end]].utf8Segments[depth] == name { end += 1 }
                while reader.key.compareBytes(name.byteSpan) < 0 {
                    guard try reader.next() else { return }
                }
                if reader.key.equalsBytes(name.byteSpan) {
                    try take(next..<end, depth: depth, value: reader.value, document: document)
                }
                next = end
            }
        }

        /// Notes the value for the paths that end here and searches in it for those that continue.
        private mutating func take(
            _ range: Range<Int>, depth: Int, value: RawSpan, document: RawSpan
        ) throws(InvalidDocument) {
            var next = range.lowerBound
            // Sorted, the paths that end here come first.
            while next < range.upperBound, paths[order[next]].count == depth + 1 {
                found[order[next]] = document.byteOffsets(of: value)
                next += 1
            }
            if next < range.upperBound, let map = DocumentBytes.plainMapEntries(of: value) {
                try run(next..<range.upperBound, depth: depth + 1, entries: map, document: document)
            }
        }
    }
}

extension FieldPath {
    /// Whether the path comes before another: segment by segment by bytes, a prefix first.
    ///
    /// The same order as `<`, compared a segment and not a byte at a time.
    package func precedes(_ other: FieldPath) -> Bool {
        let shared = min(utf8Segments.count, other.utf8Segments.count)
        for index in 0..<shared {
            let own = utf8Segments[index]
            let theirs = other.utf8Segments[index]
            let order = own.byteSpan.compareBytes(theirs.byteSpan)
            if order != 0 { return order < 0 }
        }
        return utf8Segments.count < other.utf8Segments.count
    }
}
