// The security rules of a cluster, which all of its servers have in common.
//
//     hearth rules apply at any server ──► hearth.rules ── once a second ──► the directory of each server, in force
//
// Rules name databases in their paths, and every server serves all databases of all stores. So they belong to the
// cluster and not to a store: a database that moves is judged by the same rules before, during and after.
//
// Each new session with the database compares the last text: the database may have lost some, and then the servers go
// back with it.

import Authorization
import Basics
import PostgreSQLLog

/// Thread-safe.
struct ClusterRules: SharedRules {
    let home: HomeDatabase

    func news(after seen: SeenRules) throws(RequestError) -> RulesNews {
        let (session, rows) = try home.run { session in
            RulesTable.texts(after: UInt64(clamping: seen.number), withLast: session != seen.session)
        }
        return RulesNews(
            texts: rows.map { (Int(clamping: $0.number(0) ?? 0), $0.text(1)) }, session: session)
    }

    func add(_ text: String, as number: Int, after last: Int) throws(RequestError) -> Bool {
        let (number, last) = (UInt64(clamping: number), UInt64(clamping: last))
        guard try !home.run(RulesTable.adding(text, as: number, after: last)).isEmpty else { return false }
        // What stays is removed with the next text.
        _ = try? home.run(RulesTable.trimming)
        return true
    }
}
