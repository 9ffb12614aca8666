// The last base of a store, for people.

import Basics
import PostgreSQLLog

/// What `hearth cluster status` says about it.
struct ClusterBase {
    let row: BaseRow
    private let store: String

    /// - Returns: nil if the store has none.
    init?(of tables: StoreTables, _ session: PostgreSQLSession) throws(SQLFailure) {
        guard let row = BaseRow(try session.run(tables.lastBase)) else { return nil }
        self.row = row
        store = tables.name
    }

    var text: String {
        switch row.location {
        case .table: "base at \(row.place.sequence) in the database"
        case .folder(let folder): "base at \(row.place.sequence) in the directory for bases (\(store)/\(folder))"
        }
    }

    var json: String {
        let name: String
        let isInDirectory: Bool
        switch row.location {
        case .table(let table): (name, isInDirectory) = (table, false)
        case .folder(let folder): (name, isInDirectory) = ("\(store)/\(folder)", true)
        }
        return "{\"number\":\(row.number),\"sequence\":\(row.place.sequence),\"bytes\":\(row.byteCount),"
            + "\"place\":\(JSONText.quoted(isInDirectory ? "directory" : "database")),"
            + "\"name\":\(JSONText.quoted(name))}"
    }
}
