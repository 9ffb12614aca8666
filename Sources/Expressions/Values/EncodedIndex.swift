// Many look-ups in one large map.

internal import Basics
internal import DocumentModel

/// Where the entries of an encoded map begin: a look-up costs the logarithm of their number, not a walk over them.
package struct EncodedIndex: Sendable {
    private let slice: EncodedSlice
    /// Offsets in the contents of the slice.
    private var starts: [Int] = []

    /// Walks over the map once.
    ///
    /// - Returns: nil if the names of the entries do not ascend, as they do in canonical bytes.
    package init?(_ slice: EncodedSlice) {
        self.slice = slice
        let contents = slice.contents
        var reader = FieldEntryReader(contents)
        var previous = contents.extracting(first: 0)
        do throws(InvalidDocument) {
            while try reader.next() {
                if !starts.isEmpty, previous.compareBytes(reader.key) >= 0 { return nil }
                previous = reader.key
                starts.append(reader.start)
            }
        } catch {
            return nil
        }
    }

    /// The operand of a key; ``Operand/absent`` if there is none.
    package func member(_ name: String) -> Operand {
        name.withUTF8Span { name in
            let contents = slice.contents
            var (low, high) = (0, starts.count)
            while low < high {
                let middle = (low + high) / 2
                var reader = FieldEntryReader(contents.extracting(starts[middle]..<contents.byteCount))
                // The bytes were read before: nothing throws.
                guard (try? reader.next()) == true else { return .absent }
                let order = reader.key.compareBytes(name)
                if order == 0 { return slice.operand(reader.value) }
                if order < 0 { low = middle + 1 } else { high = middle }
            }
            return .absent
        }
    }
}
