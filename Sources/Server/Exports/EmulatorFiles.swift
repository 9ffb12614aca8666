// The emulator's routes for managed exports:
//
//     POST /emulator/v1/projects/P:export   {"database", "export_directory", "export_name"}
//     POST /emulator/v1/projects/P:import   {"database", "export_directory"}: the path of the overall metadata file
//
// They read and write files that the caller names, so a server has them only if it listens on a loopback address, is
// open or in the emulator's mode, and the request did not come through a proxy.

internal import Authorization
internal import Basics
internal import Calls
internal import DocumentJSON
internal import DocumentModel
internal import DocumentStore
internal import EventLoops
internal import FirestoreService
internal import HTTPProtocols
internal import Identity
internal import ManagedExport

/// The exports and imports that callers asked for: one at a time, on a separate thread. Thread-safe.
package final class EmulatorFiles: Sendable {
    private let work = Monitor(Work())

    private struct Work {
        var isBusy = false
        var isStopping = false
    }

    package init() {}

    /// Refuses further work, and waits for what is under way. It ends at its next page.
    package func stop() {
        work.update { $0.isStopping = true }
        work.wait { $0.isBusy ? nil : () }
    }

    var isStopping: Bool { work.withLock { $0.isStopping } }

    /// Does work on a separate thread, then calls `completion` there.
    func run(
        _ body: @escaping () throws -> Void, completion: @escaping @Sendable (RequestError?) -> Void
    ) throws(RequestError) {
        let isFree = work.withLock { work in
            if work.isBusy || work.isStopping { return false }
            work.isBusy = true
            return true
        }
        guard isFree else { throw RequestError(.resourceExhausted, "An export or an import is under way.") }
        do {
            let thread = try SystemThread(name: "export") { [self] in
                var failure: RequestError?
                do { try body() } catch { failure = Self.requestError(error) }
                completion(failure)
                work.update { $0.isBusy = false }
            }
            thread.detach()
        } catch {
            work.update { $0.isBusy = false }
            throw RequestError(.resourceExhausted, "\(error)")
        }
    }

    private static func requestError(_ error: any Error) -> RequestError {
        (error as? RequestError) ?? RequestError(.invalidArgument, "\(error)")
    }
}

extension EmulatorHandler {
    /// Refuses requests of a server that must not touch files that a caller names.
    private func admittedFiles(_ exchange: HTTPExchange, _ head: HTTPHead) throws(RequestError) -> EmulatorFiles {
        let origin = exchange.origin(head)
        let trusts = authorization.map { [.open, .emulator].contains($0.state.authenticator.mode) } ?? true
        guard let files, trusts, !origin.isProxied else {
            throw RequestError(
                .permissionDenied,
                "Only an open server on a loopback address has these routes; use hearth export and hearth import.")
        }
        return files
    }

    /// Exports or imports a database, and replies when that is done.
    func moveFiles(_ exchange: HTTPExchange, _ head: HTTPHead, isExport: Bool, _ body: RawSpan) throws(RequestError) {
        let files = try admittedFiles(exchange, head)
        let request = try FilesRequest(body, needsName: isExport)
        let store = try service(of: request.database).store
        let loop = exchange.loop
        let bound = LoopBound((handler: self, exchange: exchange))
        try files.run(
            {
                if isExport {
                    try request.export(store, files)
                } else {
                    try request.load(into: store, files)
                }
            },
            completion: { failure in
                loop.execute {
                    let (handler, exchange) = bound.value
                    if let failure { exchange.fail(failure) } else { handler.reply(exchange, "{}") }
                }
            })
    }
}

/// The body of a request to export or to import.
private struct FilesRequest {
    let database: DatabaseName
    /// An absolute path: the new folder, or what is imported.
    let path: String

    init(_ body: RawSpan, needsName: Bool) throws(RequestError) {
        do throws(JSONObject.Mistake) {
            let object = try JSONObject([UInt8](copying: body))
            guard let name = try object.string("database"), let database = try? DatabaseName(name) else {
                throw JSONObject.Mistake("it must have database, for example projects/p/databases/(default)")
            }
            guard let folder = try object.string("export_directory"), folder.hasPrefix("/") else {
                throw JSONObject.Mistake("it must have export_directory, an absolute path")
            }
            self.database = database
            guard needsName else {
                path = folder
                return
            }
            guard let name = try object.string("export_name"), !name.isEmpty, !name.contains("/"), name != "..",
                name != "."
            else { throw JSONObject.Mistake("it must have export_name, a name without slashes") }
            path = "\(folder)/\(name)"
        } catch {
            throw .invalidArgument("The body cannot be read: \(error).")
        }
    }

    func export(_ store: DocumentStore, _ files: EmulatorFiles) throws {
        let writer = try ExportFolderWriter(
            path, database: database, start: Int64(clamping: SystemClock.microseconds()), hasFirebaseFile: false)
        try StoreExport.write(database, of: store, to: writer, isCancelled: { files.isStopping })
        try writer.finish()
    }

    func load(into store: DocumentStore, _ files: EmulatorFiles) throws {
        var work = StoreImport(into: database, of: store, mapsReferences: false)
        try work.run(try ExportFolder(path), isCancelled: { files.isStopping })
    }
}
