// Whether the schema `hearth` of a database is Hearth's.
//
// A database may be another one than its address meant, or may have been restored to a time before it had any tables.
// Another application may have a schema of the name: nothing is made there.

/// The schema `hearth` has something else than the tables of a cluster.
package struct OtherSchema: Error, CustomStringConvertible {
    /// A table or view.
    let relation: String

    package var description: String {
        "the schema hearth of the database has \(relation), which is not of Hearth: nothing was made there; name "
            + "another database"
    }
}

extension StoreTables {
    private static let ownNames = [
        "stores", "bases", "servers", "databases", "identity", "rules", "revocations", "revocations_turn", "secrets",
    ]

    /// A relation of the schema that is not of Hearth; no row if there is none, or the tables of a cluster are there.
    private static let otherRelation = SQLStatement(
        """
        WITH relations AS (SELECT c.oid, c.relname::text AS name FROM pg_class c
            JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = 'hearth' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')),
        own AS (SELECT name FROM relations JOIN pg_attribute ON attrelid = oid
            WHERE name = 'stores' AND attname = 'renewals' OR name = 'servers' AND attname = 'commit_version')
        SELECT name FROM relations
        WHERE (SELECT count(*) FROM own) < 2 AND name NOT IN (SELECT name FROM own)
            AND (name IN ('stores', 'servers') OR name !~ '^(log|base)_' AND name <> ALL (\(texts("$1"))))
        ORDER BY name LIMIT 1
        """, [.list(ownNames)])

    /// - Throws: ``OtherSchema``, `SQLFailure`.
    package static func checkSchema(_ session: PostgreSQLSession) throws {
        if let row = try session.run(otherRelation).first { throw OtherSchema(relation: row.text(0)) }
    }

    /// Makes what all stores have in common, unless it exists.
    /// - Throws: ``OtherSchema``, `SQLFailure`.
    package static func make(_ session: PostgreSQLSession) throws {
        try checkSchema(session)
        if try session.run(exists).first?.number(0) != 1 { try session.run(creation) }
    }
}
