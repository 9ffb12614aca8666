extension Memtable {
    /// Entries whose insertion points are prefetched together.
    static let insertionsMax = 8

    /// Entries up to which nothing is prefetched: a document without index entries, and the count of its collection,
    /// which the commit before has touched.
    private static let aloneMax = 2

    /// Inserts entries. A search stalls on cache misses, so the insertion points of several are prefetched before the
    /// first insertion. Writer's thread.
    ///
    /// - Parameters:
    ///   - count: at most `insertionsMax`.
    ///   - key: the key and the version of an entry, by its number from 0.
    ///   - insert: inserts an entry, by its number, into the leaf that was found for it.
    @inline(__always)
    func insert(
        _ count: Int, key: (Int) -> (bytes: UnsafeRawBufferPointer, version: UInt64), insert: (Int, KnownLeaf?) -> Void
    ) {
        if count <= Self.aloneMax {
            for number in 0..<count { insert(number, nil) }
            return
        }
        var leaves = InlineArray<8, KnownLeaf>(repeating: KnownLeaf(leaf: 0, high: 0))
        for number in 0..<count {
            let (bytes, version) = unsafe key(number)
            unsafe prefetchFilter(bytes)
            leaves[number] = KnownLeaf(leaf: unsafe prefetch(bytes, version), high: 0)
        }
        for number in 0..<count {
            let (bytes, version) = unsafe key(number)
            leaves[number] = known(leaves[number].leaf)
            unsafe prefetch(bytes, version, in: leaves[number].leaf)
        }
        for number in 0..<count { insert(number, leaves[number]) }
    }
}
