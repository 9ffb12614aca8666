// The state of an archive that `hearth restore` is asked for.

import Archive
import DocumentModel
import DocumentStore
import EmbeddedEngine
import FileSystem
import Storage

/// A state of an archive: a version, and a part of the documents.
struct ArchivedState {
    private let archive: String
    private let version: CommitVersion?
    private let selection: StoreSelection?

    /// - Throws: `UsageError` if the flags contradict each other, and what is wrong with a name or the archive.
    init(_ arguments: ParsedArguments, _ archive: String) throws {
        self.archive = archive
        version = try Self.version(arguments, archive)
        selection = try Self.selection(arguments)
    }

    /// The version to restore; nil for the last one.
    private static func version(_ arguments: ParsedArguments, _ archive: String) throws -> CommitVersion? {
        let number = arguments.value(of: RestoreCommand.version)
        guard let time = arguments.value(of: RestoreCommand.at) else {
            return number.map { CommitVersion(microseconds: UInt64($0)) }
        }
        if number != nil { throw UsageError(message: "--at and --version cannot be combined") }
        let catalogue = try ArchiveCatalogue(archive)
        let version = CommitVersion(microseconds: time.microseconds)
        guard let last = catalogue.lastVersion else { return nil }
        if version <= last { return version }
        // After the last commit nothing has changed, as far as the archive knows.
        try catalogue.checkEnd()
        return last
    }

    private static func selection(_ arguments: ParsedArguments) throws -> StoreSelection? {
        let (id, path) = (
            arguments.value(of: RestoreCommand.database), arguments.value(of: RestoreCommand.collection)
        )
        if id == nil, path == nil { return nil }
        let project = arguments[ServerFlags.project]
        let named = try id.map { try DatabaseName(project: project, database: $0) }
        let collection = try path.map { path in
            // Any database: only the form of the path is looked at.
            let database = try DatabaseName(project: project, database: id ?? "(default)")
            let collection = PathWords.path(path)
            _ = try CollectionPath(database: database, path: collection)
            return collection
        }
        return StoreSelection(database: named, collection: collection)
    }

    /// Makes a data directory of the state. It is opened once, which replays the commits after the base.
    ///
    /// - Returns: what to say about it.
    func restore(to target: String, _ progress: @escaping WorkProgress.Handler) throws -> String {
        guard let selection else { return try restoreAll(to: target, progress) }
        let whole = "\(target)/whole"
        try Directory.create(target)
        let note = try restoreAll(to: whole, progress)
        let report = try StoreSalvage.run(whole, to: "\(target)/part", taking: selection, progress: progress) {
            try CompanionFiles.copy(from: whole, to: $0)
        }
        if let loss = report.losses.first { throw CommandFailure("\(archive) is damaged: \(loss)") }
        try Directory.removeAll(whole)
        for name in try Directory.names(in: "\(target)/part") {
            try Directory.rename("\(target)/part/\(name)", to: "\(target)/\(name)")
        }
        try Directory.remove("\(target)/part")
        try Directory.sync(target)
        return "\(note); \(report.documents) documents of it"
    }

    private func restoreAll(to target: String, _ progress: @escaping WorkProgress.Handler) throws -> String {
        let outcome = try ArchiveRestore.run(
            from: archive, to: target, upTo: version, progress: progress,
            replay: { records in
                var configuration = StoreConfiguration.forTool(target)
                configuration.engine.restoredRecords = records
                if let error = try DocumentStore.open(configuration).close() { throw error }
            })
        let time = PointInTime(microseconds: outcome.version.microseconds).flagText
        let catalogue = try ArchiveCatalogue(archive)
        let note = outcome.version == catalogue.lastVersion ? catalogue.unfinishedNote.map { "; \($0)" } : nil
        return " as of \(time) (version \(outcome.version)): a base, and \(outcome.records) commits after it"
            + (note ?? "")
    }
}
