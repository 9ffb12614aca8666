// Finding fields of a large document again and again.

internal import Basics

/// Where the entries of a document are, so that a field is found in a time that grows with the logarithm of their
/// number.
///
/// It costs one walk over each large map, and the memory of four bytes for each of its entries, when a field of the map
/// is first asked for. So it pays off for a document that is compared with many queries. For one document; belongs to
/// one thread.
package final class FieldIndex {
    /// By where the entries of a map begin in the document: where each of them begins in the map. Nil for entries that
    /// are not in the order of their names.
    private var maps: [Int: [UInt32]?] = [:]

    /// Maps with fewer bytes are walked each time.
    private static let indexedBytesMin = 1 << 10

    package init() {}

    /// How many maps were walked so far. For tests.
    package var mapCount: Int { maps.count }

    /// The value of the entry with a name among the entries of a map of the document: see
    /// ``DocumentBytes/entryValue(_:in:tag:)``.
    @_lifetime(copy entries)
    func entryValue(_ name: RawSpan, in entries: RawSpan, tag: UInt8, of document: RawSpan) -> RawSpan? {
        guard entries.byteCount >= Self.indexedBytesMin, let starts = starts(of: entries, in: document), !starts.isEmpty
        else {
            return DocumentBytes.entryValue(name, in: entries, tag: tag)
        }
        // The last entry whose name does not come after the one that is wanted.
        var (place, end) = (0, starts.count)
        while place + 1 < end {
            let middle = (place + end) / 2
            if Self.name(at: Int(starts[middle]), in: entries).compareBytes(name) <= 0 {
                place = middle
            } else {
                end = middle
            }
        }
        let entryEnd = place + 1 < starts.count ? Int(starts[place + 1]) : entries.byteCount
        return DocumentBytes.entryValue(name, in: entries.extracting(Int(starts[place])..<entryEnd), tag: tag)
    }

    private func starts(of entries: RawSpan, in document: RawSpan) -> [UInt32]? {
        guard let begin = document.byteOffsets(of: entries)?.lowerBound else { return nil }
        if let known = maps[begin] { return known }
        let found = Self.starts(of: entries)
        maps[begin] = .some(found)
        return found
    }

    private static func starts(of entries: RawSpan) -> [UInt32]? {
        var starts: [UInt32] = []
        var reader = FieldEntryReader(entries)
        var last = entries.extracting(first: 0)
        do throws(InvalidDocument) {
            while try reader.next() {
                if !starts.isEmpty, last.compareBytes(reader.key) >= 0 { return nil }
                last = reader.key
                starts.append(UInt32(truncatingIfNeeded: reader.start))
            }
        } catch {
            return nil
        }
        return starts
    }

    /// The name of the entry that begins at an offset.
    @_lifetime(copy entries)
    private static func name(at start: Int, in entries: RawSpan) -> RawSpan {
        var reader = FieldEntryReader(entries.extracting(start..<entries.byteCount))
        return (try? reader.next()) ?? false ? reader.key : entries.extracting(first: 0)
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
