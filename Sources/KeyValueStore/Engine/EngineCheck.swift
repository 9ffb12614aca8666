// Verifying a directory that no engine has open: `hearth check` begins here.

/// Looks at everything the engine promises about its files, and says what is wrong.
package enum EngineCheck {
    /// What was found.
    package struct Report: Sendable {
        /// What is wrong, a sentence each; empty when all is well. Stops growing at `problemsMax`.
        package var problems: [String] = []
        /// All commits up to here are in runs.
        package var checkpoint = CommitVersion.zero
        /// The version of the last commit.
        package var lastVersion = CommitVersion.zero
        package var runs = 0
        /// Entries of all runs: keys at versions.
        package var entries = 0
        /// Those of them that a newer entry of the same key supersedes.
        package var historyEntries = 0
        /// Commit groups in the log.
        package var logFrames = 0
        /// Commits in these groups.
        package var logRecords = 0
        package var isClean: Bool { problems.isEmpty }

        static let problemsMax = 100

        mutating func note(_ problem: String) {
            if problems.count < Self.problemsMax { problems.append(problem) }
        }
    }

    /// Checks format, log and runs; of an older format the tree. Changes nothing. Takes the directory's lock meanwhile.
    /// - Parameter progress: gets the number of entries of runs checked so far, on this thread.
    /// - Throws: `locked`, `unsupportedFormat` or `inputOutput` when the directory cannot be looked at.
    package static func run(
        directory: String, progress: @escaping WorkProgress.Handler = { _ in }
    ) throws(StorageError) -> Report {
        guard Directory.exists(directory + "/FORMAT") else {
            throw StorageError(.unsupportedFormat, "not a data directory: it has no FORMAT file", file: directory)
        }
        let lock = try DirectoryFormat.lock(directory, isReadOnly: true)
        defer { lock.unlock() }
        let format = try DirectoryFormat.read(directory + "/FORMAT")
        var report = Report()
        do throws(StorageError) {
            _ = try TimelineFile.read(in: directory, isSummed: format == .current)
        } catch {
            report.note(error.description)
        }
        do throws(StorageError) {
            let state =
                switch format {
                case .one, .two: try checkTree(directory, &report)
                case .three, .four, .five: try RunCheck.run(directory + "/runs", &report, progress)
                }
            checkLog(directory + "/log", state, &report)
        } catch {
            report.note(error.description)
        }
        return report
    }

    private static func checkLog(_ directory: String, _ state: Manifest, _ report: inout Report) {
        do {
            let log = unsafe try LogRecovery.read(directory: directory, state: state, isReadOnly: true) { _, _ in }
            report.logFrames = log.frameCount
            report.logRecords = log.recordCount
            report.lastVersion = log.lastVersion
        } catch {
            report.note("\(error)")
        }
    }

    /// Checks the tree of a directory of format 1 or 2; returns what it says about itself.
    private static func checkTree(_ directory: String, _ report: inout Report) throws(StorageError) -> Manifest {
        let tree = try DirectoryFormat.openTree(directory)
        let contents = try tree.newest()
        let state = try tree.state(contents)
        report.checkpoint = state.checkpoint
        if state.newest < state.checkpoint { report.note("the tree's newest version is below its checkpoint") }
        if state.horizon > state.checkpoint { report.note("history was removed after the checkpoint") }
        var problems: [String] = []
        tree.walk(contents) { problem in if problems.count < Report.problemsMax { problems.append(problem) } }
        for problem in problems { report.note(problem) }
        // Among damaged pages the entries cannot be gone through.
        if problems.isEmpty { try countEntries(contents.snapshot, state, &report) }
        var manifest = Manifest()
        manifest.checkpoint = state.checkpoint
        manifest.firstSegment = state.firstSegment
        return manifest
    }

    /// Goes through the entries as an upgrade will.
    private static func countEntries(
        _ tree: TreeSnapshot, _ state: TreeState, _ report: inout Report
    ) throws(StorageError) {
        var entries = try TreeEntries(tree, upTo: state.newest.microseconds)
        var key: [UInt8] = []
        var newer: UInt64 = 0
        while let entry = unsafe try entries.next() {
            report.entries += 1
            let isSameKey = unsafe key.withUnsafeBytes { unsafe compareBytes($0, entry.key) } == 0
            if unsafe entry.version == 0 || isSameKey && entry.version >= newer {
                let name = unsafe RunCheck.hex(entry.key)
                unsafe report.note("the tree has \(name) at version \(entry.version) after version \(newer)")
            }
            if isSameKey { report.historyEntries += 1 } else { unsafe key = Array(entry.key) }
            unsafe newer = entry.version
        }
    }
}
