// Filling a new tree with the entries of another.

internal import CLMDB

extension Tree {
    /// Makes the bytes of an entry for the copy, in a buffer that it makes large enough; answers how many.
    typealias Conversion = (
        _ key: UnsafeRawBufferPointer, _ entry: UnsafeRawBufferPointer, _ buffer: ByteBuffer
    ) -> Int

    /// Appends all entries of a database of another tree to an empty one of the same order, converted if need be.
    /// - Throws: `corrupt` when the other tree is damaged, `full`, `inputOutput`.
    func append<Order>(
        _ source: consuming PageCursor<Order>, to target: MDB_dbi, _ convert: Conversion? = nil
    ) throws(StorageError) {
        let buffer = ByteBuffer(capacity: 4096)
        try source.moveToEnd(.forward)
        while source.isAtEntry {
            let transaction = unsafe try beginWriting().transaction
            var bytes = 0
            do throws(StorageError) {
                bytes = unsafe try append(&source, to: target, transaction, buffer, convert)
            } catch {
                unsafe mdb_txn_abort(transaction)
                throw error
            }
            unsafe try commit(transaction, dirtyBytes: 2 * bytes)
        }
    }

    /// Appends as many of the entries as one transaction takes; returns their bytes.
    private func append<Order>(
        _ source: inout PageCursor<Order>, to target: MDB_dbi, _ transaction: OpaquePointer, _ buffer: ByteBuffer,
        _ convert: Conversion?
    ) throws(StorageError) -> Int {
        var bytes = 0
        while source.isAtEntry && bytes < 16 << 20 {
            let (sourceKey, entry) = unsafe (source.key, try source.data())
            var key = unsafe MDB_val(sourceKey)
            var data = unsafe MDB_val(entry)
            if let convert = unsafe convert {
                let count = unsafe convert(sourceKey, entry, buffer)
                unsafe data = MDB_val(UnsafeRawBufferPointer(rebasing: buffer.all[..<count]))
            }
            unsafe try Tree.check(
                mdb_put(transaction, target, &key, &data, UInt32(MDB_APPEND)), "cannot write the copy", path)
            unsafe bytes += key.mv_size + data.mv_size
            try source.step(.forward)
        }
        return bytes
    }
}
