// What `hearth serve` imports before it serves, and exports at its end.

import Basics
import DocumentModel
import DocumentStore
import FileSystem
import FirestoreService
import Glibc
import ManagedExport
import Server

/// `--import` and `--export-on-exit`. Both open the store while nobody else does, so an import is complete when the
/// server is ready, and an export has everything that was acknowledged.
struct ServeExports {
    static let importFolder = Flag<String>(
        "import", "DIR", required: false,
        help: """
            Imports a managed export before the server is ready, into the database that it is of, unless this database \
            has documents.
            """)
    static let exportFolder = Flag<String>(
        "export-on-exit", "DIR", required: false,
        help: """
            SIGTERM and SIGINT write a managed export to this folder, in place of an export that is there. It has no \
            create and update times, indexes and rules.
            """)
    static let exportDatabase = Flag<String>(
        "export-database", "NAME", required: false,
        help: "The database of --export-on-exit, if the server has several: projects/PROJECT/databases/DATABASE.")

    static let flags: [any FlagDeclaration] = [importFolder, exportFolder, exportDatabase]

    private let importPath: String?
    private let exportPath: String?
    private let database: DatabaseName?
    private let configuration: StoreConfiguration
    private let log: Log

    /// A file in the data directory while an import is not complete.
    private var mark: String { "\(configuration.directory)/IMPORT" }

    /// Refuses a target of the export that must not be replaced.
    init(_ arguments: ParsedArguments, _ configuration: StoreConfiguration, _ log: Log) throws {
        importPath = arguments.value(of: Self.importFolder)
        exportPath = arguments.value(of: Self.exportFolder).map(PathWords.absolute)
        database = try arguments.value(of: Self.exportDatabase).map { name throws(RequestError) in
            try DatabaseName(name)
        }
        self.configuration = configuration
        self.log = log
        guard let exportPath else { return }
        try ExportFolderWriter.completeReplacement(of: exportPath)
        try ExportFolderWriter.checkTarget(exportPath, mayReplace: true)
    }

    /// Imports what `--import` names.
    func importDocuments() throws {
        guard let importPath else { return }
        let folder = try ExportFolder(importPath)
        guard let database = try StoreImport.source(of: folder) else {
            try folder.checkComplete(0)
            return log(.info, "import_empty", ["folder": importPath])
        }
        let store = try DocumentStore.open(configuration)
        defer { store.close() }
        let isUnfinished = Directory.exists(mark)
        if !isUnfinished, try StoreExport.hasDocuments(database, in: store) {
            return log(
                .info, "import_skipped", ["folder": importPath, "message": "\(database) has documents already"])
        }
        try File(mark, flags: O_WRONLY | O_CREAT).sync()
        try Directory.sync(configuration.directory)
        var work = StoreImport(into: database, of: store, mapsReferences: false)
        try work.run(folder)
        try Directory.removeFile(mark)
        try Directory.sync(configuration.directory)
        log.write(
            .info, "imported",
            [("folder", importPath), ("database", "\(database)"), ("documents", String(work.documents))])
    }

    /// Writes what `--export-on-exit` asks for. The server has stopped.
    func exportDocuments() throws {
        guard let exportPath else { return }
        let store = try DocumentStore.open(configuration)
        defer { store.close() }
        guard let database = try exportedDatabase(store) else {
            return log(.warning, "export_skipped", ["message": "there are no documents"])
        }
        let writer = try ExportFolderWriter(
            exportPath, database: database, start: Int64(clamping: SystemClock.microseconds()))
        try StoreExport.write(database, of: store, to: writer)
        try writer.finish(mayReplace: true)
        log.write(
            .info, "exported",
            [("folder", exportPath), ("database", "\(database)"), ("documents", String(writer.documents))])
    }

    /// The database that is named, or the only one that has documents; nil if none has.
    private func exportedDatabase(_ store: DocumentStore) throws -> DatabaseName? {
        if let database { return database }
        let found = try store.databaseNames.filter { try StoreExport.hasDocuments($0, in: store) }
        if found.count > 1 {
            let names = found.map(\.description).sorted().joined(separator: ", ")
            throw CommandFailure("an export has one database; name one with --export-database: \(names)")
        }
        return found.first
    }
}
