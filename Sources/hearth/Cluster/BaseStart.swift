// From which base a server without a state starts, and what it does while there is none that it can use.

import FirestoreService
import PostgreSQLLog
import Replication
import Storage

/// Looks for a state to start from: the newest base that the log continues, an earlier one if that is damaged, or
/// nothing if the log has everything. Used by one thread.
struct BaseStart {
    /// What an attempt has come to.
    enum Outcome: Equatable {
        case made
        /// Why no base can be used now. The leader makes another one, or an operator mounts the directory.
        case waits(String)
    }

    let bases: StoreBases
    let session: PostgreSQLSession
    let log: Log

    private var tables: StoreTables { bases.tables }

    /// Makes the directory.
    ///
    /// - Parameter mark: gets the directory before it takes its place, or instead of one from a base.
    /// - Throws: what must not be tried again: errors of the directory that is made, `SQLFailure`, and a
    ///   `CommandFailure` if the server lacks a setting.
    func attempt(to directory: String, marking mark: (String) throws -> Void) throws -> Outcome {
        var problem: StorageError?
        for base in try bases.continued(session) {
            do {
                try fetch(base, to: directory, marking: mark)
                return .made
            } catch let error as StorageError {
                try note(error, of: base)
                problem = problem ?? error
            }
        }
        if try bases.logHasEverything(session) {
            try mark(directory)
            log(.info, "cluster_directory_made", ["store": tables.name])
            return .made
        }
        // What no other server can change.
        if let problem, problem.code == .refused, bases.shared == nil { throw CommandFailure("\(problem)") }
        return .waits(problem.map { "\($0)" } ?? bases.nothingContinues)
    }

    /// Why a server that gave up its state could not start again, by what can be seen without reading a base; nil if it
    /// could.
    func unusableReason() throws -> String? {
        var problem: String?
        for base in try bases.continued(session) {
            do throws(StorageError) {
                try bases.check(base)
                return nil
            } catch {
                problem = problem ?? "\(error)"
            }
        }
        if try bases.logHasEverything(session) { return nil }
        return problem ?? bases.nothingContinues
    }

    private func fetch(_ base: BaseRow, to directory: String, marking mark: (String) throws -> Void) throws {
        log(
            .info, "base_fetching",
            [
                "bytes": String(base.byteCount), "sequence": String(base.place.sequence),
                "place": base.location.text,
            ])
        var report = BaseAnnouncement(base, tables, session)
        try bases.fetch(base, session, to: directory, marking: mark) { count in
            guard report.note(count) else { return }
            log(.info, "base_progress", ["bytes": String(count), "of": String(base.byteCount)])
        }
        log(.info, "base_fetched", ["sequence": String(base.place.sequence)])
    }

    /// Has nobody use a base that is damaged, so that the leader makes another one.
    private func note(_ error: StorageError, of base: BaseRow) throws {
        if error.code == .corrupt {
            try session.run(tables.markingDamaged(base.number))
            return log(.error, "base_damaged", ["base": String(base.number), "message": "\(error)"])
        }
        // An error of the directory that is made ends the attempt; one of the shared directory may go away.
        let isOfShared = bases.shared.map { error.file?.hasPrefix($0.directory) == true } ?? false
        guard error.code == .refused || isOfShared else { throw error }
    }
}
