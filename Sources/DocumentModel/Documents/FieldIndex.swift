// Finding fields of a large document again and again.

internal import Basics

/// Where the entries of a document are, so that a field is found in a time that grows with the logarithm of their
/// number.
///
/// It costs one walk over each large map, and the memory of four bytes for each of its entries, when a field of the map
/// is first asked for. So it pays off for a document that is compared with many queries. For one document; belongs to
/// one thread.
package final class FieldIndex {
    /// By where the entries of a map begin in the document. Nil for entries that are not in the order of their names.
    private var maps: [Int: EntryOffsets?] = [:]

    /// Maps with fewer bytes are walked each time.
    private static let indexedBytesMin = 1 << 10

    package init() {}

    /// How many maps were walked so far. For tests.
    package var mapCount: Int { maps.count }

    /// The value of the entry with a name among the entries of a map of the document: see
    /// ``DocumentBytes/entryValue(_:in:tag:)``.
    @_lifetime(copy entries)
    func entryValue(_ name: RawSpan, in entries: RawSpan, tag: UInt8, of document: RawSpan) -> RawSpan? {
        guard entries.byteCount >= Self.indexedBytesMin, let offsets = offsets(of: entries, in: document) else {
            return DocumentBytes.entryValue(name, in: entries, tag: tag)
        }
        return offsets.value(name, in: entries, tag: tag)
    }

    private func offsets(of entries: RawSpan, in document: RawSpan) -> EntryOffsets? {
        guard let begin = document.byteOffsets(of: entries)?.lowerBound else { return nil }
        if let known = maps[begin] { return known }
        let found = EntryOffsets(entries)
        maps[begin] = .some(found)
        return found
    }
}

extension DocumentBytes {
    /// The value of a field, found by an index of the document if there is one: see ``value(at:in:)``.
    @_lifetime(copy fields)
    package static func value(at path: FieldPath, in fields: RawSpan, by index: FieldIndex?) -> RawSpan? {
        guard let index else { return value(at: path, in: fields) }
        var entries = fields
        var tag = DocumentTag.field
        let last = path.utf8Segments.count - 1
        for position in 0..<last {
            let name = path.utf8Segments[position]
            guard let value = index.entryValue(name.byteSpan, in: entries, tag: tag, of: fields),
                let map = plainMapEntries(of: value)
            else { return nil }
            entries = map
            tag = DocumentTag.mapEntry
        }
        let name = path.utf8Segments[last]
        return index.entryValue(name.byteSpan, in: entries, tag: tag, of: fields)
    }
}
