// The security rules of a cluster: a table of its home database, since all servers serve all of its databases.
//
//     hearth.rules    each text that was applied, with its number; the highest is in force

/// The statements about the table.
package enum RulesTable {
    /// Texts that are kept.
    private static let textsMax = 100

    /// Whether the table exists; one row with a truth value.
    package static let exists = SQLStatement("SELECT to_regclass('hearth.rules') IS NOT NULL")

    /// Creates the table, unless it exists.
    package static let creation = SQLStatement(
        script: """
            CREATE SCHEMA IF NOT EXISTS hearth;
            CREATE TABLE IF NOT EXISTS hearth.rules (
                number bigint PRIMARY KEY, applied timestamptz NOT NULL, source text NOT NULL);
            """)

    /// Number and text of those after a number, in their order.
    ///
    /// - Parameter withLast: the last one is among them, whatever its number is.
    package static func texts(after number: UInt64, withLast: Bool) -> SQLStatement {
        let last = withLast ? "OR number = (SELECT max(number) FROM hearth.rules)" : ""
        return SQLStatement(
            "SELECT number, source FROM hearth.rules WHERE number > $1::bigint \(last) ORDER BY number",
            [.number(number)])
    }

    /// Adds a text if a number is that of the last one, or 0 if there is none. One row if that was done.
    package static func adding(_ text: String, as number: UInt64, after last: UInt64) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO hearth.rules SELECT $1::bigint, clock_timestamp(), $2::text
            WHERE (SELECT coalesce(max(number), 0) FROM hearth.rules) = $3::bigint
            ON CONFLICT (number) DO NOTHING RETURNING number
            """, [.number(number), .text(text), .number(last)])
    }

    /// Removes the oldest texts beyond those that are kept.
    package static let trimming = SQLStatement(
        "DELETE FROM hearth.rules WHERE number <= (SELECT max(number) FROM hearth.rules) - \(textsMax)")
}
