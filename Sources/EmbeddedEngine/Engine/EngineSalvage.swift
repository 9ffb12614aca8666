// Reading a damaged directory: everything that a checksum says is intact is taken.

internal import CommitLog
internal import FileSystem
package import Storage

/// Takes what a salvage finds. Used by one thread.
package protocol SalvageSink: AnyObject {
    /// An entry of the runs below ``EntrySpaces/lowest``, in no order; the same may come again. The bytes are valid for
    /// the call.
    /// - Parameter value: nil for a tombstone.
    func take(key: UnsafeRawBufferPointer, version: CommitVersion, value: UnsafeRawBufferPointer?) throws
    /// A record of the log, in the order of versions; valid for the call.
    func take(record: RawSpan, version: CommitVersion) throws
    /// A sentence about what cannot be read.
    func note(_ loss: String)
}

/// Reads what is readable of a directory that no engine has open. Changes nothing in it.
package enum EngineSalvage {
    /// Gives all intact entries of document files and the records of the log to a sink.
    ///
    /// Index entries are not read: they follow from the documents. Without a manifest, and in what a killed process has
    /// left of a copy, all document files count, also those that merges have replaced.
    /// - Throws: `locked`, `unsupportedFormat` for another known format, `inputOutput` if this user must not read a
    ///   file, or what the sink throws.
    package static func run(directory: String, into sink: any SalvageSink) throws {
        try checkAccess(directory)
        let lock = try DirectoryFormat.lock(directory, isReadOnly: true)
        defer { lock.unlock() }
        try checkFormat(directory, sink)
        var manifest: Manifest?
        noting(sink) { () throws(StorageError) in manifest = try Manifest.read(in: directory + "/runs") }
        // FORMAT is written last: a killed copy has a manifest that names no file yet.
        if manifest?.runs.isEmpty == true, !Directory.exists(DirectoryFormat.path(in: directory)) { manifest = nil }
        for file in files(manifest, directory + "/runs", sink) { try file.run() }
        try readLog(directory + "/log", manifest ?? Manifest(), sink)
    }

    /// Refuses files that this user must not read: they are not damaged, and another user takes them.
    private static func checkAccess(_ directory: String) throws(StorageError) {
        for part in ["runs", "log", CompanionFiles.rules].map({ "\(directory)/\($0)" }) {
            let names = (try? Directory.names(in: part)) ?? []
            for path in [part] + names.map({ "\(part)/\($0)" }) where Directory.isForbidden(path) {
                let owner = Directory.status(of: path).owner.map(Directory.nameOfUser) ?? "that owns it"
                throw StorageError(
                    .inputOutput, "this user must not read the file or directory", file: path,
                    remedy: "run the command as the user \(owner)")
            }
        }
    }

    /// Refuses a directory of another known format, which would be misread. A FORMAT file that is damaged is a loss.
    private static func checkFormat(_ directory: String, _ sink: any SalvageSink) throws {
        do throws(StorageError) {
            let state = try FormatState(of: directory)
            guard let refusal = state.refusal(of: directory, by: DirectoryFormat.current) else { return }
            if state != .unknown { throw refusal }
            sink.note(refusal.description)
        } catch {
            if error.code == .unsupportedFormat { throw error }
            sink.note(error.description)
        }
    }

    private static func noting(_ sink: any SalvageSink, _ body: () throws(StorageError) -> Void) {
        do throws(StorageError) { try body() } catch { sink.note(error.description) }
    }

    /// The document files: those of the manifest, or all.
    private static func files(
        _ manifest: Manifest?, _ directory: String, _ sink: any SalvageSink
    ) -> [DocumentSalvage] {
        if let manifest {
            return manifest.runs.flatMap { run in
                run.parts.enumerated().filter { $0.element.kind == .documents }.map { index, part in
                    DocumentSalvage(
                        directory: directory, number: part.file, part: part,
                        lowerBound: index == 0 ? run.lowerBound : [], sink: sink)
                }
            }
        }
        sink.note("\(directory): without a manifest of files all are read, also those that a merge had replaced")
        var names: [String] = []
        noting(sink) { () throws(StorageError) in names = try Directory.names(in: directory) }
        return names.compactMap { RunFormat.file(named: $0) }.filter { $0.kind == .documents }.map(\.number).sorted()
            .map { DocumentSalvage(directory: directory, number: $0, part: nil, lowerBound: [], sink: sink) }
    }

    private static func readLog(_ directory: String, _ manifest: Manifest, _ sink: any SalvageSink) throws {
        try WriteAheadLog.salvage(
            directory, from: manifest.logStart, after: manifest.checkpoint, note: { sink.note($0) }
        ) { version, record in
            try sink.take(record: record, version: version)
        }
    }
}
