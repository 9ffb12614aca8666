// Many look-ups in one large map.

internal import Basics
internal import DocumentModel

/// An encoded map with the places of its entries: a look-up costs the logarithm of their number, not a walk over them.
package struct EncodedIndex: Sendable {
    private let slice: EncodedSlice
    private let offsets: EntryOffsets

    /// Walks over the map once.
    ///
    /// - Returns: nil if the names of the entries do not ascend, as they do in canonical bytes.
    package init?(_ slice: EncodedSlice) {
        guard let offsets = EntryOffsets(slice.contents) else { return nil }
        self.slice = slice
        self.offsets = offsets
    }

    /// The operand of a key; ``Operand/absent`` if there is none.
    package func member(_ name: String) -> Operand {
        name.withUTF8Span { name in
            guard let value = offsets.value(name, in: slice.contents, tag: slice.entryTag) else { return .absent }
            return slice.operand(value)
        }
    }
}
