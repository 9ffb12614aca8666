// Verifying a directory that no engine has open: `hearth check` begins here.

internal import CommitLog
internal import FileSystem
package import Storage

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
        /// Whether everything that is wrong concerns index entries only, which can be made again from the documents.
        package var isRepairable: Bool { !isClean && !hasOtherProblems }
        private var hasOtherProblems = false

        static let problemsMax = 100

        /// - Parameter kind: what the problem concerns.
        mutating func note(_ problem: String, about kind: RunKind = .documents) {
            if kind != .entries { hasOtherProblems = true }
            if problems.count < Self.problemsMax { problems.append(problem) }
        }
    }

    /// Checks format, log and runs. Changes nothing. Takes the directory's lock meanwhile.
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
        try DirectoryFormat.check(directory)
        var report = Report()
        do throws(StorageError) {
            _ = try TimelineFile.read(in: directory)
            _ = try IdentityFile.read(in: directory)
        } catch {
            report.note(error.description)
        }
        do throws(StorageError) {
            checkLog(directory + "/log", try RunCheck.run(directory + "/runs", &report, progress), &report)
        } catch {
            report.note(error.description)
        }
        return report
    }

    private static func checkLog(_ directory: String, _ manifest: Manifest, _ report: inout Report) {
        do {
            let log = try WriteAheadLog.read(directory, from: manifest.logStart, after: manifest.checkpoint)
            report.logFrames = log.groups
            report.logRecords = log.records
            report.lastVersion = log.lastVersion
        } catch {
            report.note("\(error)")
        }
    }
}
