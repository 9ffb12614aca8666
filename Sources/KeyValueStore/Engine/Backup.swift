// A consistent copy of a directory while it is being served.

internal import Glibc
internal import Synchronization

extension EmbeddedEngine {
    /// Writes a copy, as of a version published during the call, into a directory that does not exist yet or is empty.
    /// The copy is a separate data directory: compact, without a log. Serving continues; the tree's file may grow
    /// meanwhile, because pages that the copy still reads are not reused.
    ///
    /// - Throws: `full`, `failed`, `closed`, `inputOutput`. What was written is left there then; a copy is whole once
    ///   it has its FORMAT file, which comes last.
    package func backup(to directory: String) throws(StorageError) {
        if Directory.exists(directory), try !Directory.names(in: directory).isEmpty {
            throw StorageError(.inputOutput, "the backup directory is not empty", file: directory)
        }
        try Directory.create(directory)
        let lock = try DirectoryFormat.lock(directory)
        try checkpointNow()
        // A read transaction may begin in the middle of another checkpoint; wait for one that does not.
        var transaction = try TreeTransaction(core.tree)
        var state = try transaction.state()
        while state.newest != state.checkpoint {
            try checkpointNow()
            transaction = try TreeTransaction(core.tree)
            state = try transaction.state()
        }
        let copy = try Tree(path: directory + "/tree", .new, mapBytesMax: options.mapBytesMax, readersMax: 16)
        let source = transaction.snapshot
        unsafe try copy.append(PageCursor<ByteOrder>(source, source.main), to: copy.main)
        unsafe try copy.append(PageCursor<HistoryOrder>(source, source.history), to: copy.history)
        state.firstSegment = 0
        try TreeUpdate.begin(copy, horizon: state.horizon).commit(state, fault: FaultInjection(fault: nil))
        copy.close()
        try Directory.create(directory + "/log")
        try Directory.sync(directory + "/tree")
        try DirectoryFormat.create(directory)
        lock.unlock()
    }
}
