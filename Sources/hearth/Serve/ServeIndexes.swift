// `hearth serve --indexes`: the declared indexes of one database, from a file.

import Basics
import Dispatch
import DocumentModel
import DocumentStore
import FirestoreService
import Indexing
import Synchronization

/// What `hearth serve` declares before it is ready.
struct ServeIndexes {
    static let file = Flag<String>(
        "indexes", "FILE", required: false,
        help: """
            A firestore.indexes.json. The declared indexes of the default database of --indexes-project become those \
            of the file, as with hearth indexes apply; new ones are built in the background.
            """)
    static let project = Flag(
        "indexes-project", "ID", default: "hearth", help: "The project whose indexes --indexes declares.")

    static let flags: [any FlagDeclaration] = [file, project]

    private let declaration: IndexDeclaration
    private let database: DatabaseName

    /// Reads the file; nil without the flag.
    /// - Throws: `CommandFailure`, `UsageError` if the file or the project cannot be used.
    static func read(_ arguments: ParsedArguments) throws -> ServeIndexes? {
        guard let path = arguments.value(of: file) else { return nil }
        let database: DatabaseName
        do throws(RequestError) {
            database = try DatabaseName(project: arguments[project])
        } catch {
            throw UsageError(message: "--indexes-project: \(error.message)")
        }
        let indexes = try IndexFile(json: try InputFile.contents(of: path))
        for note in indexes.notes { CommandRouter.complain(note) }
        return ServeIndexes(declaration: indexes.declaration, database: database)
    }

    /// Declares the indexes, and waits until the declaration is durable.
    /// - Throws: `RequestError` if the store refuses them.
    func declare(in store: DocumentStore, _ log: Log) throws {
        let outcome = Mutex<Result<Void, RequestError>>(.success(()))
        let done = DispatchSemaphore(value: 0)
        store.declareIndexes(declaration, in: database) { result in
            outcome.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        try outcome.withLock { $0 }.get()
        log(
            .info, "indexes_declared",
            [
                "database": "\(database)", "indexes": "\(declaration.indexes.count)",
                "overrides": "\(declaration.fieldOverrides.count)",
            ])
    }
}
