// Verifying a directory that no engine has open: `hearth check` begins here.

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
            throw StorageError(.unsupportedFormat, "not a data directory: it has no FORMAT file", file: directory)
        }
        let lock = try DirectoryFormat.lock(directory)
        defer { lock.unlock() }
        let isSummed = try DirectoryFormat.read(directory + "/FORMAT") != .one
        var report = Report()
        do throws(StorageError) {
            let tree = try TreeFile(
                directory: directory + "/tree", mapBytesMax: 1 << 36, isReadOnly: true, isSummed: isSummed)
            let state = try checkTree(tree, isSummed: isSummed, &report)
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

    private static func checkTree(
        _ tree: TreeFile, isSummed: Bool, _ report: inout Report
    ) throws(StorageError) -> TreeState {
        let contents = try tree.newest()
        let state = try tree.state(contents)
        report.checkpoint = state.checkpoint
        if state.newest < state.checkpoint { report.note("the tree's newest version is below its checkpoint") }
        if state.horizon > state.checkpoint { report.note("history was removed after the checkpoint") }
        var problems: [String] = []
        tree.walk(contents) { problem in if problems.count < Report.problemsMax { problems.append(problem) } }
        for problem in problems { report.note(problem) }
        // Among damaged pages the entries cannot be gone through.
        if problems.isEmpty && isSummed {
            try checkMain(contents.snapshot, state, &report)
            try checkHistory(contents.snapshot, state, &report)
        }
        return state
    }

    private static func checkMain(
        _ tree: TreeSnapshot, _ state: TreeState, _ report: inout Report
    ) throws(StorageError) {
        var cursor = PageCursor<ByteOrder>(tree, tree.main)
        try cursor.moveToEnd(.forward)
        while cursor.isAtEntry {
            report.treeEntries += 1
            let version = unsafe MainEntry.version(try cursor.data())
            if version == 0 || version > state.newest.microseconds {
                report.note(
                    "main: the entry of \(unsafe hex(cursor.key)) has version \(version), the newest version of the tree is \(state.newest)"
                )
            }
            try cursor.step(.forward)
        }
    }

    /// For one key, history's spans of time may not overlap, and end before the value in `main` begins.
    private static func checkHistory(
        _ tree: TreeSnapshot, _ state: TreeState, _ report: inout Report
    ) throws(StorageError) {
        var previous: [UInt8] = []
        var newerVersion = UInt64.max
        var cursor = PageCursor<HistoryOrder>(tree, tree.history)
        try cursor.moveToEnd(.forward)
        while cursor.isAtEntry {
            report.historyEntries += 1
            let entry = unsafe try cursor.data()
            let userKey = unsafe HistoryEntry.userKey(cursor.key)
            let version = unsafe HistoryEntry.version(entry)
            if unsafe previous.withUnsafeBytes({ unsafe compareBytes($0, userKey) }) != 0 {
                unsafe previous.replaceSubrange(previous.indices, with: userKey)
                let newest = unsafe try tree.find(userKey, in: tree.main, ByteOrder.self)
                newerVersion = unsafe newest.map { unsafe MainEntry.version($0) } ?? UInt64.max
            }
            if unsafe ~HistoryEntry.invertedVersion(cursor.key) != version {
                report.note("history: the key and the entry of \(unsafe hex(cursor.key)) have different versions")
            }
            let superseded = unsafe HistoryEntry.superseded(entry)
            if version == 0 || version >= superseded || superseded > newerVersion {
                report.note(
                    "history: \(unsafe hex(userKey)) has a value from \(version) until \(superseded), the next from \(newerVersion)"
                )
            }
            if superseded > state.newest.microseconds {
                report.note("history: \(unsafe hex(userKey)) ends after the newest version of the tree")
            }
            newerVersion = version
            try cursor.step(.forward)
        }
    }

    private static func hex(_ bytes: UnsafeRawBufferPointer) -> String {
        unsafe bytes.prefix(64).reduce(into: "0x") { text, byte in
            text += (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
    }
}
