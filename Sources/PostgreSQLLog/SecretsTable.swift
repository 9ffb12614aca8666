// Secrets that the servers of a cluster have in common: a table of its home database.
//
//     hearth.secrets     a row for each, by its name

/// The statements about the table.
package enum SecretsTable {
    /// Whether the table exists; one row with a truth value.
    package static let exists = SQLStatement("SELECT to_regclass('hearth.secrets') IS NOT NULL")

    /// Creates the table, unless it exists.
    package static let creation = SQLStatement(
        script: """
            CREATE SCHEMA IF NOT EXISTS hearth;
            CREATE TABLE IF NOT EXISTS hearth.secrets (name text PRIMARY KEY, secret bytea NOT NULL);
            """)

    /// Enters a secret, unless there is one of that name.
    package static func entering(_ secret: [UInt8], as name: String) -> SQLStatement {
        SQLStatement(
            "INSERT INTO hearth.secrets VALUES ($1::text, $2::bytea) ON CONFLICT (name) DO NOTHING",
            [.text(name), .bytes(secret)])
    }

    /// The secret of a name.
    package static func secret(_ name: String) -> SQLStatement {
        SQLStatement("SELECT secret FROM hearth.secrets WHERE name = $1::text", [.text(name)])
    }
}
