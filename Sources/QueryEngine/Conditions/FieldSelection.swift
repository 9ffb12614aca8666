// Copying some fields of a document: projections of queries and masks of reads.

package import Basics
package import DocumentModel

/// The fields of a document to return, kept in their maps.
///
/// A field that the document lacks is left out, and so is a map of which nothing was asked that it has.
package struct FieldSelection: Sendable, Equatable {
    /// Sorted, none leading into another.
    let paths: [FieldPath]

    /// Selects the fields at the given paths; `__name__` selects none, because the name always comes along.
    package init(_ paths: [FieldPath]) {
        var sorted = paths
        sorted.sort(byPath: \.self)
        var kept: [FieldPath] = []
        for path in sorted where !path.isDocumentName {
            if let last = kept.last, last.isPrefix(of: path) { continue }
            kept.append(path)
        }
        self.paths = kept
    }

    /// A query's projection; nil when it returns all fields.
    init?(_ projection: Projection?) {
        guard let projection, !projection.fields.isEmpty else { return nil }
        self.init(projection.fields)
    }

    /// Appends the selected field entries, in canonical form as `fields` is.
    package func append(_ fields: RawSpan, into writer: inout ByteBuffer) {
        guard !paths.isEmpty else { return }
        append(0..<paths.count, depth: 0, entries: fields, entryTag: DocumentTag.field, into: &writer)
    }

    /// Merges the entries of a map with the paths that lead through it; both are sorted.
    private func append(
        _ range: Range<Int>, depth: Int, entries: RawSpan, entryTag: UInt8, into writer: inout ByteBuffer
    ) {
        var reader = FieldEntryReader(entries)
        guard (try? reader.next()) == true else { return }
        var next = range.lowerBound
        while next < range.upperBound {
            let name = paths[next].utf8Segments[depth]
            var end = next + 1
            while end < range.upperBound, paths[end].utf8Segments[depth] == name { end += 1 }
            while reader.key.compareBytes(name.byteSpan) < 0 {
                guard (try? reader.next()) == true else { return }
            }
            if reader.key.equalsBytes(name.byteSpan) {
                if paths[next].count == depth + 1 {
                    writer.append(entries.extracting(reader.start..<reader.end))
                } else if let map = DocumentBytes.plainMapEntries(of: reader.value) {
                    appendPart(next..<end, depth: depth + 1, map: map, entryTag, name, into: &writer)
                }
            }
            next = end
        }
    }

    /// Appends a map with what is selected of it, or nothing if that is nothing.
    private func appendPart(
        _ range: Range<Int>, depth: Int, map: RawSpan, _ entryTag: UInt8, _ name: [UInt8],
        into writer: inout ByteBuffer
    ) {
        let start = writer.count
        var isEmpty = false
        writer.entry(entryTag, name: name) { writer in
            writer.withLengthPrefix(field: FieldNumber.Value.mapValue) { writer in
                let start = writer.count
                append(range, depth: depth, entries: map, entryTag: DocumentTag.mapEntry, into: &writer)
                isEmpty = writer.count == start
            }
        }
        if isEmpty { writer.truncate(to: start) }
    }
}
