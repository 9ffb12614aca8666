internal import FileSystem
internal import Glibc
package import Storage

/// Upgrades data directories of older formats, keeps their old files until that is confirmed, and returns to them.
///
/// The files of a format are the directories `runs` and `log`. Those of another format than FORMAT says have its number
/// after their names, so a directory of format 2 with the kept files of format 1 has
///
///     FORMAT  runs  log  runs.format-1  log.format-1
///
/// An upgrade from 1 to 2 has these steps, each durable before the next:
///
///     1. runs.format-2 and log.format-2 are written; FORMAT says 1, and everything is as before
///     2. FORMAT     changing from format 1 to 2; only this can be continued now
///     3. runs and log become runs.format-1 and log.format-1
///     4. runs.format-2 and log.format-2 become runs and log
///     5. FORMAT     format 2
///
/// A process that ends during the first step leaves files that the next upgrade removes. One that ends later leaves a
/// directory that no engine opens until ``run(progress:)`` has completed the steps. The way back has steps 2 to 5 with
/// the numbers exchanged; then the files of the newer format are removed.
package struct DirectoryUpgrade {
    private let directory: String
    private let steps: [any FormatStep]
    /// The format that directories are upgraded to.
    private let current: Int

    /// The steps of this version, one for each older format that it can upgrade.
    package static let steps: [any FormatStep] = []

    /// - Parameter current: the format to upgrade to; tests plant another one with the steps that lead to it.
    package init(
        of directory: String, to current: Int = DirectoryFormat.current, steps: [any FormatStep] = Self.steps
    ) {
        self.directory = directory
        self.steps = steps
        self.current = current
    }

    // MARK: What there is

    /// What an upgrade would do.
    package struct Plan: Equatable, Sendable {
        /// The format of the directory, and the one that it gets; the same if nothing is to be done.
        package var from: Int
        package var to: Int
        /// Whether a change of the format was interrupted, so that it only has to be completed.
        package var isInterrupted = false
        /// Bytes that will be written at most, and those that the file system has left.
        package var bytesNeeded = 0
        package var bytesFree = 0
        /// The format whose files are kept until the upgrade is confirmed.
        package var kept: Int?
    }

    /// Looks at the directory, and changes nothing.
    /// - Throws: `unsupportedFormat` if there is no way from its format, `locked` if it is in use, `inputOutput`.
    package func plan() throws(StorageError) -> Plan {
        let lock = try lock(isReadOnly: true)
        defer { lock.unlock() }
        return try planUnlocked()
    }

    private func planUnlocked() throws(StorageError) -> Plan {
        let state = try FormatState(of: directory)
        switch state {
        case .format(current): return Plan(from: current, to: current, kept: try keptFormat())
        case .format(let from):
            let path = try steps(from: from, state)
            var plan = Plan(from: from, to: current)
            // Each step but the first has the output of the one before as its input, which is about as large.
            for step in path { plan.bytesNeeded = max(plan.bytesNeeded, try step.bytesNeeded(for: files(nil))) }
            if path.count > 1 { plan.bytesNeeded *= 2 }
            plan.bytesFree = try File(directory, flags: O_RDONLY | O_DIRECTORY).freeBytes()
            return plan
        case .changing(let from, let to):
            // An upgrade to the current format, or the way back from it.
            guard max(from, to) == current else { throw refusal(state) }
            return Plan(from: from, to: to, isInterrupted: true)
        default: throw refusal(state)
        }
    }

    /// The steps from a format to the current one.
    private func steps(from: Int, _ state: FormatState) throws(StorageError) -> [any FormatStep] {
        let path = steps.filter { $0.from >= from && $0.from < current }.sorted { $0.from < $1.from }
        guard from < current, path.map(\.from) == Array(from..<current) else { throw refusal(state) }
        return path
    }

    private func refusal(_ state: FormatState) -> StorageError {
        state.refusal(of: directory, by: current)
            ?? StorageError(.unsupportedFormat, "there is no way from this format", file: directory)
    }

    /// The older format whose files are kept.
    private func keptFormat() throws(StorageError) -> Int? {
        let names = Set(try Directory.names(in: directory))
        return (1..<max(current, 1)).last { format in
            FormatPart.allCases.allSatisfy { names.contains($0.name(format)) }
        }
    }

    // MARK: Upgrade

    /// Upgrades the directory, or completes a change of its format that was interrupted. Does nothing if the directory
    /// has the current format.
    ///
    /// - Parameter progress: gets the number of bytes written so far, on this thread.
    /// - Returns: what was done.
    /// - Throws: what ``plan()`` throws; `full` if there is too little space; what a step throws. Before the second of
    ///   the steps above the directory is then as it was.
    package func run(progress: WorkProgress.Handler = { _ in }) throws(StorageError) -> Plan {
        let lock = try lock()
        defer { lock.unlock() }
        let plan = try planUnlocked()
        if plan.isInterrupted {
            try change(from: plan.from, to: plan.to)
            if plan.to < plan.from { try removeFiles(ofFormat: plan.from) }
            return plan
        }
        guard plan.from != plan.to else { return plan }
        guard plan.bytesNeeded <= plan.bytesFree else {
            throw StorageError(
                .full, "the upgrade needs \(plan.bytesNeeded) bytes, and the disk has \(plan.bytesFree)",
                file: directory)
        }
        do throws(StorageError) {
            try write(plan, progress)
            try change(from: plan.from, to: plan.to)
        } catch {
            // Later the new files are needed to complete the change.
            if (try? FormatState(of: directory)) == .format(plan.from) {
                for format in (plan.from + 1)...plan.to { try? removeFiles(ofFormat: format) }
            }
            throw error
        }
        return plan
    }

    /// Writes the files of the new format beside the others.
    private func write(_ plan: Plan, _ progress: WorkProgress.Handler) throws(StorageError) {
        var source = files(nil)
        for step in try steps(from: plan.from, .format(plan.from)) {
            let format = step.from + 1
            try removeFiles(ofFormat: format)
            let target = files(format)
            for path in [target.runs, target.log] { try Directory.create(path) }
            var state = WorkProgress("writing format \(format)", done: 0, total: plan.bytesNeeded, .bytes)
            progress(state)
            try step.convert(source, to: target) { bytes in
                state.done = bytes
                progress(state)
            }
            for path in [target.runs, target.log] { try Directory.sync(path) }
            if step.from > plan.from { try removeFiles(ofFormat: step.from) }
            source = target
        }
        try Directory.sync(directory)
    }

    // MARK: The end of an upgrade

    /// Removes the files of the older format. From now on there is no way back.
    /// - Returns: the format whose files were removed; nil if none were kept.
    /// - Throws: `unsupportedFormat` if the directory does not have the current format; `locked`, `inputOutput`.
    package func confirm() throws(StorageError) -> Int? {
        let lock = try lock()
        defer { lock.unlock() }
        let kept = try checkCurrent()
        // A format whose removal was interrupted lacks one of its names, and is garbage.
        for format in 1..<max(current, 1) { try removeFiles(ofFormat: format) }
        return kept
    }

    /// Makes the kept files of the older format those of the directory again. What was committed since the upgrade is
    /// lost. Listeners cannot resume across it.
    ///
    /// - Returns: the format that the directory has now.
    /// - Throws: `unsupportedFormat` if no files are kept; `locked`, `inputOutput`.
    package func goBack() throws(StorageError) -> Int {
        let lock = try lock()
        defer { lock.unlock() }
        guard let kept = try checkCurrent() else {
            throw StorageError(
                .unsupportedFormat, "no files of an older format are kept, so there is no way back", file: directory)
        }
        try change(from: current, to: kept)
        try removeFiles(ofFormat: current)
        return kept
    }

    /// - Returns: the format that is kept.
    private func checkCurrent() throws(StorageError) -> Int? {
        let state = try FormatState(of: directory)
        if let refusal = state.refusal(of: directory, by: current) { throw refusal }
        return try keptFormat()
    }

    // MARK: Files

    private func lock(isReadOnly: Bool = false) throws(StorageError) -> File {
        guard Directory.exists(DirectoryFormat.path(in: directory)) else {
            throw StorageError(.unsupportedFormat, "not a data directory: it has no FORMAT file", file: directory)
        }
        return try DirectoryFormat.lock(directory, isReadOnly: isReadOnly)
    }

    private func path(_ part: FormatPart, _ format: Int?) -> String { "\(directory)/\(part.name(format))" }

    /// - Parameter format: nil for the files that the directory uses.
    private func files(_ format: Int?) -> FormatFiles {
        FormatFiles(runs: path(.runs, format), log: path(.log, format))
    }

    /// Removes the files of a format that the directory does not use. First a name that makes them incomplete: then
    /// nobody takes the rest for a complete format.
    private func removeFiles(ofFormat format: Int) throws(StorageError) {
        let removed = "\(directory)/\(FormatPart.removed)"
        for part in FormatPart.allCases {
            try Directory.removeAll(removed)
            let path = path(part, format)
            guard Directory.exists(path) else { continue }
            try Directory.rename(path, to: removed)
            try Directory.sync(directory)
            try Directory.removeAll(removed)
        }
        try Directory.sync(directory)
    }

    /// Steps 2 to 5, from wherever a process ended.
    private func change(from: Int, to: Int) throws(StorageError) {
        try FormatState.changing(from: from, to: to).write(in: directory)
        for part in FormatPart.allCases where Directory.exists(path(part, to)) {
            if Directory.exists(path(part, nil)) { try Directory.rename(path(part, nil), to: path(part, from)) }
        }
        try Directory.sync(directory)
        for part in FormatPart.allCases where Directory.exists(path(part, to)) {
            try Directory.rename(path(part, to), to: path(part, nil))
        }
        // What was committed in the newer format is gone: a client must not continue from it.
        if to < from { try Directory.removeFile("\(directory)/\(TimelineFile.name)") }
        try Directory.sync(directory)
        try FormatState.format(to).write(in: directory)
    }
}

/// A directory with files of a format.
private enum FormatPart: String, CaseIterable {
    case runs, log

    /// What is being removed.
    static let removed = "removed"

    /// - Parameter format: nil for the format that the directory has.
    func name(_ format: Int?) -> String { format.map { "\(rawValue).format-\($0)" } ?? rawValue }
}
