// Reading the log of a store without being a member of it: what a command does.

package import Replication
package import Storage

/// Reads groups in order, and verifies their chain. Belongs to one thread.
package final class LogReader {
    private let session: PostgreSQLSession
    private let tables: StoreTables
    private let store: StoreIdentity
    /// The last group that was read.
    package private(set) var place: LogPlace

    /// - Parameter place: that of the base that is known; the start of the log without one.
    package init(_ session: PostgreSQLSession, _ tables: StoreTables, of store: StoreIdentity, after place: LogPlace) {
        self.session = session
        self.tables = tables
        self.store = store
        self.place = place
    }

    /// The next groups; none if there are no further ones yet.
    /// - Throws: `SQLFailure`; `corrupt` if the log does not continue the place, or a group is damaged.
    package func next() throws -> [LoggedGroup] {
        var rowsMax = StoreTables.rowsReadMax
        while true {
            var found = LogRows()
            let first = place.sequence + 1
            guard let rows = try rows(from: first, rowsMax) else { return [] }
            if let problem = found.add(rows, after: place, store: store, rowsMax: rowsMax) { throw damaged(problem) }
            if found.groups.isEmpty, found.piecesMissing > 0 {
                rowsMax = found.piecesMissing
                continue
            }
            for group in found.groups {
                guard group.header.follows(place) else {
                    throw damaged("group \(group.header.sequence) does not continue the one before")
                }
                place = group.header.place
            }
            return found.groups
        }
    }

    /// Rows of the table of a group; nil if there is none.
    private func rows(from first: UInt64, _ rowsMax: Int) throws(SQLFailure) -> [SQLRow]? {
        let table = StoreTables.tableNumber(of: first)
        for isUpgraded in [false, true] {
            do throws(SQLFailure) {
                return try session.run(tables.read(table: table, from: first, skipsFirst: false, rowsMax: rowsMax))
            } catch {
                if error.isMissingTable { return nil }
                guard error.isMissingColumn, !isUpgraded else { throw error }
                try session.run(StoreTables.upgrade(tables.table(table)))
            }
        }
        return nil
    }

    private func damaged(_ problem: String) -> StorageError {
        StorageError(.corrupt, "the log of the store: \(problem)")
    }
}
