extension Memtable {
    /// Entries whose insertion points are prefetched together.
    static let insertionsMax = 8

    /// Inserts entries. A search stalls on cache misses, so the insertion points of all are prefetched before the
    /// first insertion. Writer's thread.
    ///
    /// - Parameters:
    ///   - count: at most `insertionsMax`.
    ///   - key: the key and the version of an entry, by its number from 0.
    ///   - insert: inserts an entry, by its number.
    @inline(__always)
    func insert(
        _ count: Int, key: (Int) -> (bytes: UnsafeRawBufferPointer, version: UInt64), insert: (Int) -> Void
    ) {
        var leaves = InlineArray<8, UInt32>(repeating: 0)
        for number in 0..<count {
            let (bytes, version) = unsafe key(number)
            unsafe prefetchFilter(bytes)
            leaves[number] = unsafe prefetch(bytes, version)
        }
        for number in 0..<count {
            let (bytes, version) = unsafe key(number)
            unsafe prefetch(bytes, version, in: leaves[number])
        }
        for number in 0..<count { insert(number) }
    }
}
