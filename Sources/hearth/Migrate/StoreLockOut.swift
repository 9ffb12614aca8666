// The servers of a cluster take no writes while `hearth migrate` makes a directory of a store.

import Basics
import PostgreSQLLog
import Replication

/// The lock-out of one attempt. Either the cluster takes writes, or the row of its store says that a directory may do
/// so (StoreTables+Leaving), whichever answers of the database are lost. Belongs to one thread.
struct StoreLockOut {
    private let tables: StoreTables
    private let database: String
    private let attempt = ServerIdentity(high: .random(in: 1 ... .max), low: .random(in: .min ... .max))
    /// What the lock-out names. Nil before it was asked for.
    private var seen: StoreRow?
    /// No server has given out a later time, in microseconds since 1970, once the servers are locked out.
    private(set) var ceiling: UInt64 = 0

    /// How often the database is asked while the outcome is not known.
    private static let attemptsMax = 30
    private static let pauseMicroseconds: UInt32 = 1_000_000

    /// - Parameter database: its address.
    init(_ tables: StoreTables, of database: String) {
        self.tables = tables
        self.database = database
    }

    /// Whether the servers may be locked out by this attempt.
    var hasBegun: Bool { seen != nil }

    /// Locks the servers out. After a failure they may be.
    /// - Parameter check: throws if a store of a level is not to be moved.
    mutating func begin(_ session: PostgreSQLSession, _ check: (UInt64) throws -> Void) throws {
        while true {
            guard let row = StoreRow(try session.run(tables.statement(.observe, closed: 0, timeline: 0))) else {
                throw CommandFailure("the database has no store \(tables.name) any more")
            }
            try check(row.level)
            seen = row
            // Otherwise another server leads since it was seen, or another attempt has locked the servers out.
            if let locked = StoreRow(try session.run(tables.lockingOut(row, for: attempt))), locked.isDone {
                ceiling = locked.lease.ceiling
                return
            }
            seen = nil
        }
    }

    /// Enters that the store is moved. The directory is complete, and takes its place next.
    func complete() throws {
        guard let row = try ask(tables.leaving(for: attempt)), row.isDone else {
            throw CommandFailure("another hearth migrate has begun to move the store \(tables.name) meanwhile")
        }
    }

    /// Has the cluster take writes again. The directory of this attempt does not exist.
    /// - Returns: why the cluster takes none; nil if it does.
    func takeBack() -> String? {
        guard let seen else { return nil }
        if seen.level == StoreTables.movedLevel { return Self.isMoved }
        do {
            let row = try ask(tables.takingBack(seen, from: attempt))
            guard let row, row.level >= StoreTables.leavingLevel else { return nil }
            return row.level == StoreTables.movedLevel ? Self.isMoved : "Another hearth migrate has locked it out"
        } catch {
            return "The cluster takes no writes, which could not be undone: \(ErrorText.describe(error))"
        }
    }

    private static let isMoved = "The cluster takes no writes since an earlier attempt"

    /// Executes a statement that may be repeated, until its outcome is known.
    private func ask(_ statement: SQLStatement) throws -> StoreRow? {
        for attempt in 1... {
            do throws(SQLFailure) {
                let session = try PostgreSQLSession(address: database)
                defer { session.close() }
                return StoreRow(try session.run(statement))
            } catch {
                guard error.isConnectionLost, attempt < Self.attemptsMax else { throw error }
                SystemThread.sleep(microseconds: Self.pauseMicroseconds)
            }
        }
        return nil
    }
}
