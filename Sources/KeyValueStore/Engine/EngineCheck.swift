// Verifying a directory that no engine has open: `hearth check` begins here.

internal import CLMDB
internal import Glibc

/// Looks at everything the engine promises about its files, and says what is wrong.
package enum EngineCheck {
    package struct Report: Sendable {
        /// What is wrong, a sentence each; empty when all is well. Stops growing at `problemsMax`.
        package var problems: [String] = []
        package var checkpoint = CommitVersion.zero
        package var lastVersion = CommitVersion.zero
        package var treeEntries = 0
        package var historyEntries = 0
        package var logFrames = 0
        package var logRecords = 0
        package var isClean: Bool { problems.isEmpty }

        static let problemsMax = 100

        mutating func note(_ problem: String) {
            if problems.count < Self.problemsMax { problems.append(problem) }
        }
    }

    /// Checks format, log, tree and history. Changes nothing. Takes the directory's lock meanwhile.
    /// - Throws: `locked`, `unsupportedFormat` or `inputOutput` when the directory cannot be looked at.
    package static func run(directory: String) throws(StorageError) -> Report {
        guard Directory.exists(directory + "/FORMAT") else {
            throw StorageError(.unsupportedFormat, "this is no data directory: it has no FORMAT file", file: directory)
        }
        let lock = try DirectoryFormat.lock(directory)
        defer { lock.unlock() }
        try DirectoryFormat.check(directory + "/FORMAT")
        var report = Report()
        do throws(StorageError) {
            let tree = try Tree(path: directory + "/tree", .readOnly, mapBytesMax: 1 << 40, readersMax: 16)
            let state = try checkTree(tree, &report)
            checkLog(directory + "/log", state, &report)
        } catch {
            report.note(error.description)
        }
        return report
    }

    private static func checkLog(_ directory: String, _ state: TreeState, _ report: inout Report) {
        do {
            let log = unsafe try LogRecovery.read(directory: directory, state: state) { _, _ in }
            report.logFrames = log.frameCount
            report.logRecords = log.recordCount
            report.lastVersion = log.lastVersion
            if log.lastVersion < state.newest {
                report.note("the tree holds version \(state.newest), but the log ends at \(log.lastVersion)")
            }
        } catch {
            report.note("\(error)")
        }
    }

    private static func checkTree(_ tree: Tree, _ report: inout Report) throws(StorageError) -> TreeState {
        let transaction = try TreeTransaction(tree)
        let state = try tree.state(transaction)
        report.checkpoint = state.checkpoint
        if state.newest < state.checkpoint { report.note("the tree's newest version is below its checkpoint") }
        if state.horizon > state.checkpoint { report.note("history has been removed beyond the checkpoint") }
        try checkMain(tree, transaction, state, &report)
        try checkHistory(tree, transaction, state, &report)
        try checkPages(tree, transaction, &report)
        return state
    }

    private static func checkMain(
        _ tree: Tree, _ transaction: TreeTransaction, _ state: TreeState, _ report: inout Report
    ) throws(StorageError) {
        var previous: [UInt8] = []
        var entries = 0
        unsafe try tree.forEachEntry(of: tree.main, transaction) { key, entry in
            entries += 1
            if unsafe previous.withUnsafeBytes({ unsafe compareBytes($0, key) >= 0 }) {
                report.note("main: keys are out of order at \(unsafe hex(key))")
            }
            unsafe previous.replaceSubrange(previous.indices, with: key)
            guard entry.count >= MainEntry.headerBytes else {
                report.note("main: the entry of \(unsafe hex(key)) is too short")
                return
            }
            let version = unsafe MainEntry.version(entry)
            if version == 0 || version > state.newest.microseconds {
                report.note("main: the entry of \(unsafe hex(key)) has version \(version), the tree ends at \(state.newest)")
            }
        }
        report.treeEntries = entries
        let counted = try tree.statistics(transaction, tree.main).ms_entries
        if counted != entries { report.note("main: \(entries) entries are there, \(counted) are counted") }
    }

    /// For one key, history's spans of time may not overlap, and end before the value in `main` begins.
    private static func checkHistory(
        _ tree: Tree, _ transaction: TreeTransaction, _ state: TreeState, _ report: inout Report
    ) throws(StorageError) {
        var previous: [UInt8] = []
        var newerVersion = UInt64.max
        var entries = 0
        unsafe try tree.forEachEntry(of: tree.history, transaction) { key, entry in
            entries += 1
            guard key.count > HistoryEntry.keySuffixBytes, entry.count >= HistoryEntry.headerBytes else {
                report.note("history: an entry is too short")
                return
            }
            let userKey = unsafe HistoryEntry.userKey(key)
            let version = unsafe HistoryEntry.version(entry)
            let order = unsafe previous.withUnsafeBytes { unsafe compareBytes($0, userKey) }
            if order > 0 { report.note("history: keys are out of order at \(unsafe hex(key))") }
            if order != 0 {
                unsafe previous.replaceSubrange(previous.indices, with: userKey)
                newerVersion = unsafe (try? tree.mainVersion(userKey, transaction)) ?? UInt64.max
            }
            let suffix = unsafe UInt64(bigEndian: key.loadUnaligned(fromByteOffset: userKey.count, as: UInt64.self))
            if ~suffix != version { report.note("history: key and entry of \(unsafe hex(key)) name different versions") }
            let superseded = unsafe HistoryEntry.superseded(entry)
            if version == 0 || version >= superseded || superseded > newerVersion {
                report.note(
                    "history: \(unsafe hex(userKey)) has a value from \(version) until \(superseded), the next from \(newerVersion)")
            }
            if superseded > state.newest.microseconds { report.note("history: \(unsafe hex(userKey)) ends after the tree") }
            newerVersion = version
        }
        report.historyEntries = entries
    }

    /// Every page of the file is in use or free, none both.
    private static func checkPages(
        _ tree: Tree, _ transaction: TreeTransaction, _ report: inout Report
    ) throws(StorageError) {
        var pages = 2  // LMDB's meta pages.
        // Databases 0 and 1 are LMDB's own: the free list, and the directory of the others.
        for database in [MDB_dbi(0), MDB_dbi(1), tree.main, tree.history, tree.meta] {
            let counts = try tree.statistics(transaction, database)
            pages += counts.ms_branch_pages + counts.ms_leaf_pages + counts.ms_overflow_pages
        }
        unsafe try tree.forEachEntry(of: 0, transaction) { _, list in
            // A list of page numbers behind its length.
            pages += unsafe list.count >= 8 ? Int(truncatingIfNeeded: list.word(at: 0)) : 0
        }
        var information = unsafe MDB_envinfo()
        unsafe try Tree.check(mdb_env_info(tree.environment, &information), "cannot look at", tree.path)
        if unsafe pages != information.me_last_pgno + 1 {
            report.note(unsafe "the tree has \(information.me_last_pgno + 1) pages, but \(pages) are in use or free")
        }
    }

    private static func hex(_ bytes: UnsafeRawBufferPointer) -> String {
        unsafe bytes.prefix(64).reduce(into: "0x") { text, byte in
            text += (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
    }
}

extension Tree {
    /// Calls `body` with every entry of a database. The bytes are valid until the transaction ends.
    fileprivate func forEachEntry(
        of database: MDB_dbi, _ transaction: TreeTransaction,
        _ body: (_ key: UnsafeRawBufferPointer, _ entry: UnsafeRawBufferPointer) -> Void
    ) throws(StorageError) {
        var opened: OpaquePointer?
        unsafe try Tree.check(mdb_cursor_open(transaction.handle, database, &opened), "cannot open a cursor", path)
        let cursor = unsafe opened!
        defer { unsafe mdb_cursor_close(cursor) }
        var key = unsafe MDB_val()
        var data = unsafe MDB_val()
        var status = unsafe mdb_cursor_get(cursor, &key, &data, MDB_FIRST)
        while status == MDB_SUCCESS {
            unsafe body(UnsafeRawBufferPointer(key), UnsafeRawBufferPointer(data))
            status = unsafe mdb_cursor_get(cursor, &key, &data, MDB_NEXT)
        }
        if status != MDB_NOTFOUND { throw Tree.error(status, "cannot read", path) }
    }

    /// The version of a key's entry in `main`, if it has one.
    fileprivate func mainVersion(
        _ key: UnsafeRawBufferPointer, _ transaction: TreeTransaction
    ) throws(StorageError) -> UInt64? {
        var treeKey = unsafe MDB_val(key)
        var data = unsafe MDB_val()
        let status = unsafe mdb_get(transaction.handle, main, &treeKey, &data)
        if status == MDB_NOTFOUND { return nil }
        try Tree.check(status, "cannot read", path)
        let entry = unsafe UnsafeRawBufferPointer(data)
        return unsafe entry.count >= MainEntry.headerBytes ? MainEntry.version(entry) : nil
    }
}
