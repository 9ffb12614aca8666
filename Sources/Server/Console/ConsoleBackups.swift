// Backups that the console starts.
//
// A caller of the network never chooses a path: backups go into the directory that the operator named with
// --backup-directory, each into a new one named by its time. One is written at a time.

internal import Basics
internal import DocumentJSON
internal import DocumentModel
internal import DocumentStore
internal import FileSystem
internal import FirestoreService
internal import Storage
internal import Synchronization

/// Starts, watches and cancels backups. Thread-safe.
final class ConsoleBackups: Sendable {
    /// Backups in the directory; more are refused, so that a caller cannot fill it without end.
    static let backupsMax = 100
    private static let prefix = "backup-"

    private struct State {
        /// The backup that is being written.
        var running: (name: String, control: CopyControl, since: UInt64)?
        /// Why the last one failed; nil if it did not.
        var failure: String?
    }

    private let store: DocumentStore
    private let log: Log
    /// Nil if the operator has named none.
    private let directory: String?
    private let state = Mutex(State())

    init(_ store: DocumentStore, _ log: Log, directory: String?) {
        self.store = store
        self.log = log
        self.directory = directory
    }

    /// What the view shows.
    var json: JSONValue {
        let (running, failure) = state.withLock { ($0.running, $0.failure) }
        var members: [String: JSONValue] = [
            "directory": directory.map { .string($0) } ?? .null, "failure": failure.map { .string($0) } ?? .null,
            "backups": .array(complete.map { .object(["name": .string($0)]) }),
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

    /// Does what a body `{"action": "start"}` or `{"action": "cancel"}` asks for.
    ///
    /// - Throws: `INVALID_ARGUMENT`; `FAILED_PRECONDITION` without a directory, during a backup, and if there are too
    ///   many; `INTERNAL` if there is no thread.
    func perform(_ body: [UInt8]) throws(RequestError) -> JSONValue {
        let action: String?
        do throws(JSONObject.Mistake) {
            action = try JSONObject(body).string("action")
        } catch {
            throw .invalidArgument("The body cannot be read: \(error).")
        }
        switch action {
        case "start": try start()
        case "cancel": state.withLock { $0.running?.control.cancel() }
        default: throw .invalidArgument("The action must be start or cancel.")
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
            guard state.running == nil else { return false }
            state.running = (name, control, now)
            state.failure = nil
            return true
        }
        guard isFree else { throw RequestError(.failedPrecondition, "A backup is being written.") }
        do {
            try SystemThread(name: "backup") { [self] in write(to: "\(directory)/\(name)", control) }.detach()
        } catch {
            state.withLock { $0.running = nil }
            throw RequestError(.internal, "There is no thread for the backup: \(error)")
        }
    }

    private func write(to target: String, _ control: CopyControl) {
        let outcome = Result { try store.backup(to: target, control) }
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
