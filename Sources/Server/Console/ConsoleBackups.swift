// Backups that the console starts.
//
// A caller of the network never chooses a path: backups go into the directory that the operator named with
// --backup-directory, each into a new one named by its time. A backup is removed by its name, which must be one of
// those that are there. One is written or removed at a time.

internal import Basics
internal import DocumentJSON
internal import DocumentModel
internal import DocumentStore
internal import FileSystem
internal import FirestoreService
internal import Storage
internal import Synchronization

/// Starts, watches, cancels and removes backups. Thread-safe.
final class ConsoleBackups: Sendable {
    /// Backups in the directory; more are refused, so that a caller cannot fill it without end.
    static let backupsMax = 100
    private static let prefix = "backup-"

    private struct State {
        /// The backup that is being written.
        var running: (name: String, control: CopyControl, since: UInt64)?
        /// The backup that is being removed.
        var removed: String?
        /// Why the last one failed; nil if it did not.
        var failure: String?
    }

    private let served: ServedStore
    private let log: Log
    /// Nil if the operator has named none.
    private let directory: String?
    private let state = Mutex(State())

    init(_ served: ServedStore, _ log: Log, directory: String?) {
        self.served = served
        self.log = log
        self.directory = directory
    }

    /// What the view shows.
    var json: JSONValue {
        let (running, removed, failure) = state.withLock { ($0.running, $0.removed, $0.failure) }
        var members: [String: JSONValue] = [
            "directory": directory.map { .string($0) } ?? .null, "failure": failure.map { .string($0) } ?? .null,
            "removed": removed.map { .string($0) } ?? .null,
            "backups": .array(complete.filter { $0 != removed }.map { .object(["name": .string($0)]) }),
        ]
        if let running {
            let progress = running.control.progress
            members["running"] = .object([
                "name": .string(running.name), "doneBytes": .integer(Int64(progress.done)),
                "totalBytes": .integer(Int64(progress.total)),
                "sinceMicroseconds": .integer(Int64(clamping: running.since)),
            ])
        }
        return .object(members)
    }

    /// Names of complete backups, the newest first: of directories with a FORMAT file.
    private var complete: [String] {
        guard let directory else { return [] }
        let names = (try? Directory.names(in: directory)) ?? []
        let complete = names.filter { name in
            name.hasPrefix(Self.prefix) && Directory.status(of: "\(directory)/\(name)/FORMAT").isRegularFile
        }
        return complete.sorted(by: >)
    }

    /// Does what a body `{"action": "start"}`, `{"action": "cancel"}` or `{"action": "remove", "name": NAME}` asks for.
    ///
    /// - Throws: `INVALID_ARGUMENT`; `NOT_FOUND` for a name that no backup has; `FAILED_PRECONDITION` without a
    ///   directory, during a backup or a removal, and if there are too many; `INTERNAL` if there is no thread.
    func perform(_ body: [UInt8]) throws(RequestError) -> JSONValue {
        let (action, name): (String?, String?)
        do throws(JSONObject.Mistake) {
            let object = try JSONObject(body)
            (action, name) = (try object.string("action"), try object.string("name"))
        } catch {
            throw .invalidArgument("The body cannot be read: \(error).")
        }
        switch action {
        case "start": try start()
        case "cancel": state.withLock { $0.running?.control.cancel() }
        case "remove": try remove(name ?? "")
        default: throw .invalidArgument("The action must be start, cancel or remove.")
        }
        return json
    }

    private func start() throws(RequestError) {
        guard let directory else {
            throw RequestError(
                .failedPrecondition, "The server was started without --backup-directory, so it writes no backups.")
        }
        guard complete.count < Self.backupsMax else {
            throw RequestError(
                .failedPrecondition, "There are \(Self.backupsMax) backups in \(directory). Remove some first.")
        }
        let now = SystemClock.microseconds()
        let name = Self.prefix + Self.time(Int64(now / 1_000_000))
        let control = CopyControl()
        let isFree = state.withLock { state in
            guard state.running == nil, state.removed == nil else { return false }
            state.running = (name, control, now)
            state.failure = nil
            return true
        }
        guard isFree else { throw Self.isBusy }
        do {
            try SystemThread(name: "backup") { [self] in write(to: "\(directory)/\(name)", control) }.detach()
        } catch {
            state.withLock { $0.running = nil }
            throw RequestError(.internal, "There is no thread for the backup: \(error)")
        }
    }

    private static var isBusy: RequestError {
        RequestError(.failedPrecondition, "A backup is being written or removed.")
    }

    /// Removes a backup on a separate thread, since files may be large.
    private func remove(_ name: String) throws(RequestError) {
        // A name from the list, so it is a directory in the one of the operator.
        guard let directory, complete.contains(name) else {
            throw RequestError(.notFound, "There is no backup of this name.")
        }
        let isFree = state.withLock { state in
            guard state.running == nil, state.removed == nil else { return false }
            state.removed = name
            state.failure = nil
            return true
        }
        guard isFree else { throw Self.isBusy }
        do {
            try SystemThread(name: "backup") { [self] in removeFiles(of: "\(directory)/\(name)") }.detach()
        } catch {
            state.withLock { $0.removed = nil }
            throw RequestError(.internal, "There is no thread for the removal: \(error)")
        }
    }

    private func removeFiles(of target: String) {
        let outcome = Result {
            // A directory without this file is not listed, also if its other files cannot be removed.
            try Directory.removeFile("\(target)/FORMAT")
            try Directory.sync(target)
            try Directory.removeAll(target)
        }
        switch outcome {
        case .success: log(.info, "copy_removed", ["form": "backup", "directory": target])
        case .failure(let error):
            log(.error, "copy_failed", ["form": "removal", "directory": target, "message": "\(error)"])
        }
        state.withLock { state in
            state.removed = nil
            if case .failure(let error) = outcome { state.failure = Self.text(of: error) }
        }
    }

    private func write(to target: String, _ control: CopyControl) {
        let outcome = Result { try served.store.backup(to: target, control) }
        switch outcome {
        case .success: log(.info, "copy_written", ["form": "backup", "directory": target])
        case .failure(let error):
            log(.error, "copy_failed", ["form": "backup", "directory": target, "message": "\(error)"])
        }
        state.withLock { state in
            state.running = nil
            if case .failure(let error) = outcome { state.failure = Self.text(of: error) }
        }
    }

    private static func text(of error: any Error) -> String {
        if let error = error as? StorageError, error.code == .cancelled { return "The backup was cancelled." }
        return "\(error)"
    }

    /// A time such as `2026-01-31T12-00-00Z`.
    private static func time(_ seconds: Int64) -> String {
        var text: [UInt8] = []
        CalendarDate(secondsSinceEpoch: seconds).appendRFC3339(to: &text)
        return String(decoding: text, as: UTF8.self).replacing(":", with: "-") + "Z"
    }
}
