/// The first key bytes whose keys keep no history, as a set that is quick to ask.
@usableFromInline package struct LatestOnlySpaces: Sendable {
    @usableFromInline var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    package init(_ spaces: Set<UInt8>) {
        for space in spaces {
            let bit = UInt64(1) << (space & 63)
            switch space >> 6 {
            case 0: words.0 |= bit
            case 1: words.1 |= bit
            case 2: words.2 |= bit
            default: words.3 |= bit
            }
        }
    }

    /// A bit for each first byte below ``EntrySpaces/lowest`` that is in the set.
    package var ofDocuments: UInt64 { words.0 & (1 << UInt64(EntrySpaces.lowest) - 1) }

    /// Whether keys with this key's first byte keep no history.
    @inlinable
    package func contains(_ key: UnsafeRawBufferPointer) -> Bool {
        guard let space = unsafe key.first else { return false }
        let word =
            switch space >> 6 {
            case 0: words.0
            case 1: words.1
            case 2: words.2
            default: words.3
            }
        return word >> (space & 63) & 1 == 1
    }
}
