// Many look-ups in one large map.

internal import Basics

/// Where the entries of an encoded map begin: a look-up costs the logarithm of their number, not a walk over them. Four
/// bytes for each entry.
package struct EntryOffsets: Sendable {
    private var starts: [UInt32] = []

    /// Walks over the entries of a map, or over the fields of a document, once.
    ///
    /// - Returns: nil if their names do not ascend, as they do in canonical bytes.
    package init?(_ entries: RawSpan) {
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
    }

    /// The value of the entry with a name: see ``DocumentBytes/entryValue(_:in:tag:)``.
    ///
    /// - Parameter entries: those that were walked over.
    @_lifetime(copy entries)
    package func value(_ name: RawSpan, in entries: RawSpan, tag: UInt8) -> RawSpan? {
        if starts.isEmpty { return nil }
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

    /// The name of the entry that begins at an offset.
    @_lifetime(copy entries)
    private static func name(at start: Int, in entries: RawSpan) -> RawSpan {
        var reader = FieldEntryReader(entries.extracting(start..<entries.byteCount))
        return (try? reader.next()) ?? false ? reader.key : entries.extracting(first: 0)
    }
}
