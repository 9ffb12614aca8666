// The free list: which pages LMDB may write next.

enum FreePages {
    /// Whether the data of an entry is a list of page numbers: their count, then the numbers, highest first.
    static func isList(_ data: UnsafeRawBufferPointer) -> Bool {
        guard data.count >= 8, data.count & 7 == 0, unsafe data.word(at: 0) <= UInt64(data.count / 8 - 1) else {
            return false
        }
        var previous = UInt64.max
        for index in unsafe 0..<Int(data.word(at: 0)) {
            let number = unsafe data.word(at: 8 + 8 * index)
            guard number > 1, number < previous else { return false }
            previous = number
        }
        return true
    }
}

extension TreeSnapshot {
    /// Calls `body` with each free page. Checks the pages of the free list on the way.
    /// - Throws: `corrupt`.
    func forEachFreePage(
        _ freeList: DatabaseRecord, _ body: (UInt64) throws(StorageError) -> Void
    ) throws(StorageError) {
        var cursor = PageCursor<NumberOrder>(self, DatabaseRoot(freeList, .freeList))
        try cursor.moveToEnd(.forward)
        while cursor.isAtEntry {
            let list = unsafe try cursor.data()
            for index in unsafe 0..<Int(list.word(at: 0)) {
                let number = unsafe list.word(at: 8 + 8 * index)
                guard number < pageCount else {
                    throw pages.damaged(
                        cursor.leafNumber, "lists page \(number) as free, and the tree has \(pageCount) pages")
                }
                try body(number)
            }
            try cursor.step(.forward)
        }
    }
}
