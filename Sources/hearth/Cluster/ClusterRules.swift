// The security rules of a cluster, which all of its servers have in common.
//
//     hearth rules apply at any server ──► hearth.rules ── once a second ──► the directory of each server, in force
//
// Rules name databases in their paths, and every server serves all databases of all stores. So they belong to the
// cluster and not to a store: a database that moves is judged by the same rules before, during and after.

import Authorization
import Basics
import PostgreSQLLog

/// Thread-safe.
struct ClusterRules: SharedRules {
    let home: HomeDatabase

    func texts(after number: Int) throws(RequestError) -> [(number: Int, text: String)] {
        try home.run(RulesTable.texts(after: UInt64(clamping: number))).map { row in
            (Int(clamping: row.number(0) ?? 0), row.text(1))
        }
    }

    func add(_ text: String, as number: Int, after last: Int) throws(RequestError) -> Bool {
        let (number, last) = (UInt64(clamping: number), UInt64(clamping: last))
        guard try !home.run(RulesTable.adding(text, as: number, after: last)).isEmpty else { return false }
        // What stays is removed with the next text.
        _ = try? home.run(RulesTable.trimming)
        return true
    }
}
