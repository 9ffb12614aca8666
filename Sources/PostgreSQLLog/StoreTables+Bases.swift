// Bases: a table for the files of each, and a row when it is complete. And what is reported to people.

package import Replication

/// A base that is complete.
package struct BaseRow: Sendable {
    package let number: UInt64
    /// The last group that it has.
    package let place: LogPlace
    package let byteCount: UInt64
    /// Where its files are.
    package let table: String
    /// How many files.
    package let parts: UInt64

    package init(number: UInt64, place: LogPlace, byteCount: UInt64, table: String, parts: UInt64 = 0) {
        self.number = number
        self.place = place
        self.byteCount = byteCount
        self.table = table
        self.parts = parts
    }

    /// - Returns: nil without a base.
    package init?(_ rows: [SQLRow]) {
        guard let row = rows.first, let number = row.number(0), let sequence = row.number(1), let hash = row.number(2),
            let version = row.number(3), let bytes = row.number(4), let parts = row.number(6)
        else { return nil }
        self.init(
            number: number, place: LogPlace(sequence: sequence, hash: hash, version: version), byteCount: bytes,
            table: row.text(5), parts: parts)
    }
}

extension StoreTables {
    /// The last base; no row without one.
    package var lastBase: SQLStatement {
        SQLStatement(
            """
            SELECT number, sequence, hash, version, bytes, parts_table, parts FROM hearth.bases
            WHERE store = $1::text ORDER BY number DESC LIMIT 1
            """, [.text(name)])
    }

    /// The base with which the store came into the database; no row if it began there.
    var migratedBase: SQLStatement {
        SQLStatement(
            """
            SELECT number, sequence, hash, version, bytes, parts_table, parts FROM hearth.bases
            WHERE store = $1::text AND sequence = 0
            """, [.text(name)])
    }

    /// The name of a table for the files of a base.
    package func baseTable(_ number: UInt64, suffix: UInt32) -> String { "hearth.base_\(name)_\(number)_\(suffix)" }

    /// Makes a table for the files of a base.
    package static func creation(ofBase table: String) -> SQLStatement {
        SQLStatement(
            script: """
                CREATE TABLE \(table) (part bigint NOT NULL, piece bigint NOT NULL, path text NOT NULL,
                    data bytea NOT NULL, PRIMARY KEY (part, piece));
                ALTER TABLE \(table) ALTER data SET STORAGE EXTERNAL;
                """)
    }

    /// Adds a piece of a file.
    package static func adding(
        _ bytes: [UInt8], to table: String, part: UInt64, piece: UInt64, path: String
    ) -> SQLStatement {
        SQLStatement(
            "INSERT INTO \(table) VALUES ($1::bigint, $2::bigint, $3::text, $4::bytea)",
            [.number(part), .number(piece), .text(path), .bytes(bytes)])
    }

    /// Pieces of a file: number, path, bytes.
    package static func pieces(of table: String, part: UInt64, from piece: UInt64, count: UInt64) -> SQLStatement {
        SQLStatement(
            """
            SELECT piece, path, data FROM \(table) WHERE part = $1::bigint AND piece >= $2::bigint
            ORDER BY piece LIMIT \(count)
            """, [.number(part), .number(piece)])
    }

    /// Enters a complete base.
    package func entering(_ base: BaseRow, parts: UInt64) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO hearth.bases VALUES ($1::text, $2::bigint, $3::bigint, $4::bigint, $5::bigint, $6::bigint,
                clock_timestamp(), $7::text, $8::bigint)
            """,
            [
                .text(name), .number(base.number), .number(base.place.sequence), .number(base.place.hash),
                .number(base.place.version), .number(base.byteCount), .text(base.table), .number(parts),
            ])
    }

    /// The names, with the schema, of all tables for files of bases.
    package var tablesOfBases: SQLStatement {
        SQLStatement(
            """
            SELECT 'hearth.' || tablename FROM pg_tables WHERE schemaname = 'hearth'
                AND starts_with(tablename, $1::text)
                AND substr(tablename, length($1::text) + 1) ~ '^[0-9]+_[0-9]+$'
            """, [.text("base_\(name)_")])
    }

    package static func dropping(_ table: String) -> SQLStatement {
        SQLStatement(script: "DROP TABLE IF EXISTS \(table)")
    }

    /// The names, without the schema, of tables that nobody needs when there is a base with a group: tables of the log
    /// that end before the table of the group, except the last of them, and bases except the last two.
    ///
    /// - Parameter sequence: of the group, or of an earlier one while an archive lacks what follows it.
    package func superfluousTables(for sequence: UInt64) -> SQLStatement {
        SQLStatement(
            """
            SELECT tablename::text FROM pg_tables WHERE schemaname = 'hearth' AND (
                starts_with(tablename, $1::text) AND substr(tablename, length($1::text) + 1) ~ '^[0-9]+$'
                    AND substr(tablename, length($1::text) + 1)::bigint < $2::bigint - 1
                OR starts_with(tablename, $3::text) AND substr(tablename, length($3::text) + 1) ~ '^[0-9]+_[0-9]+$'
                    AND 'hearth.' || tablename NOT IN (
                        SELECT parts_table FROM hearth.bases WHERE store = $4::text ORDER BY number DESC LIMIT 2))
            """,
            [
                .text("log_\(name)_"), .number(Self.tableNumber(of: sequence)), .text("base_\(name)_"), .text(name),
            ])
    }

    /// The bytes of the tables of the log from that of a group on; one row.
    package func logBytes(after sequence: UInt64) -> SQLStatement {
        SQLStatement(
            """
            SELECT coalesce(sum(pg_total_relation_size(format('hearth.%I', tablename)::regclass)), 0)::bigint
            FROM pg_tables WHERE schemaname = 'hearth' AND starts_with(tablename, $1::text)
                AND substr(tablename, length($1::text) + 1) ~ '^[0-9]+$'
                AND substr(tablename, length($1::text) + 1)::bigint >= $2::bigint
            """, [.text("log_\(name)_"), .number(Self.tableNumber(of: sequence))])
    }

    /// The names of the tables of the log without the schema, the last first.
    package var tablesOfLog: SQLStatement {
        SQLStatement(
            """
            SELECT tablename::text FROM pg_tables WHERE schemaname = 'hearth' AND starts_with(tablename, $1::text)
                AND substr(tablename, length($1::text) + 1) ~ '^[0-9]+$'
            ORDER BY substr(tablename, length($1::text) + 1)::bigint DESC
            """, [.text("log_\(name)_")])
    }

    /// The name of the table with the first group, without the schema.
    var firstTable: String { "log_\(name)_0" }

    /// Notes what this server is doing.
    package func announcement(_ figures: MemberState.Figures, version: String) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO hearth.servers VALUES ($1::text, $2::text, $3::text, $4::text, $5::bigint, $6::bigint,
                0, clock_timestamp())
            ON CONFLICT (store, address) DO UPDATE SET version = excluded.version, role = excluded.role,
                sequence = excluded.sequence, commit_version = excluded.commit_version, seen = excluded.seen
            """,
            [
                .text(name), .text(advertised), .text(version), .text(figures.role), .number(figures.place.sequence),
                .number(figures.place.version),
            ])
    }

    /// Notes how far this server is, by a commit that waits for the standbys as an append does.
    func confirmation(of place: LogPlace) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO hearth.servers VALUES ($1::text, $2::text, '', 'following', $3::bigint, $4::bigint, 0,
                clock_timestamp())
            ON CONFLICT (store, address) DO UPDATE SET sequence = excluded.sequence,
                commit_version = excluded.commit_version, seen = excluded.seen
            """,
            [.text(name), .text(advertised), .number(place.sequence), .number(place.version)])
    }
}
