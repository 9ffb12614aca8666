// The users whose tokens the servers of a cluster refuse: tables of its home database.
//
//     hearth.revocations        a row for each user, which is never removed
//     hearth.revocations_turn   one row, which each statement that adds raises
//
// A server reads the rows with a higher number than it has seen. A statement that adds holds the row of turns until it
// is committed, so a number is visible only after all lower ones.

internal import Basics

/// The statements about the tables.
package enum RevocationsTable {
    /// Users with a row, and the bytes of their identifiers: what a server can keep in its file.
    package static let usersMax = 100_000
    static let bytesMax = 5 << 20
    /// Users of one statement.
    package static let batchMax = 1_000

    /// Whether the tables exist; one row with a truth value.
    package static let exists = SQLStatement("SELECT to_regclass('hearth.revocations_turn') IS NOT NULL")

    /// Creates the tables, unless they exist.
    package static let creation = SQLStatement(
        script: """
            CREATE SCHEMA IF NOT EXISTS hearth;
            CREATE TABLE IF NOT EXISTS hearth.revocations (
                uid bytea PRIMARY KEY CHECK (octet_length(uid) <= 512), moment bigint NOT NULL, number bigint NOT NULL);
            CREATE INDEX IF NOT EXISTS revocations_number ON hearth.revocations (number);
            CREATE TABLE IF NOT EXISTS hearth.revocations_turn (
                one boolean PRIMARY KEY CHECK (one), number bigint NOT NULL);
            INSERT INTO hearth.revocations_turn VALUES (true, 0) ON CONFLICT (one) DO NOTHING;
            """)

    /// Number, identifier and moment of those after a number.
    package static func added(after number: UInt64) -> SQLStatement {
        SQLStatement(
            "SELECT number, uid, moment FROM hearth.revocations WHERE number > $1::bigint", [.number(number)])
    }

    /// Adds users, or moments that are later than those that they have. One row with a truth value: false, and nothing
    /// was added, if there would be too many.
    ///
    /// - Parameter users: at most ``batchMax``, each once.
    package static func adding(_ users: [(uid: [UInt8], moment: Int64)]) -> SQLStatement {
        precondition(users.count <= batchMax)
        return SQLStatement(
            """
            WITH wanted AS MATERIALIZED (
                SELECT decode(uid, 'hex') AS uid, moment::bigint AS moment
                FROM unnest(string_to_array($1::text, ','), string_to_array($2::text, ',')) AS pairs (uid, moment)
            ), turn AS (
                UPDATE hearth.revocations_turn SET number = number + 1 WHERE (
                    SELECT count(*) <= \(usersMax) AND coalesce(sum(octet_length(uid)), 0) <= \(bytesMax)
                    FROM (SELECT uid FROM hearth.revocations UNION SELECT uid FROM wanted) AS users
                ) RETURNING number
            ), added AS (
                INSERT INTO hearth.revocations AS known SELECT wanted.uid, wanted.moment, turn.number FROM wanted, turn
                ON CONFLICT (uid) DO UPDATE SET moment = excluded.moment, number = excluded.number
                WHERE known.moment < excluded.moment
            )
            SELECT count(*) > 0 FROM turn
            """,
            [
                .text(users.map { Hexadecimal.text($0.uid.byteSpan) }.joined(separator: ",")),
                .text(users.map { String($0.moment) }.joined(separator: ",")),
            ])
    }
}
