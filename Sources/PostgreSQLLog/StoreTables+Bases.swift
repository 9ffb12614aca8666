// Bases: a table for the files of each, and a row when it is complete. And what is reported to people.

package import Replication

/// Where the files of a base lie.
package enum BaseLocation: Equatable, Sendable {
    /// In a table, named with its schema.
    case table(String)
    /// In a folder of the directory that the servers have for bases.
    case folder(String)

    private static let folderMark = "folder:"

    /// As the row of the base has it.
    init(_ text: String) {
        self =
            text.hasPrefix(Self.folderMark)
            ? .folder(String(text.dropFirst(Self.folderMark.count))) : .table(text)
    }

    package var text: String {
        switch self {
        case .table(let name): name
        case .folder(let name): Self.folderMark + name
        }
    }

    /// The name of the folder; nil for a table.
    package var folder: String? {
        guard case .folder(let name) = self else { return nil }
        return name
    }
}

/// A base that is complete.
package struct BaseRow: Sendable {
    package let number: UInt64
    /// The last group that it has.
    package let place: LogPlace
    package let byteCount: UInt64
    package let location: BaseLocation
    /// How many files.
    package let parts: UInt64

    package init(number: UInt64, place: LogPlace, byteCount: UInt64, location: BaseLocation, parts: UInt64 = 0) {
        self.number = number
        self.place = place
        self.byteCount = byteCount
        self.location = location
        self.parts = parts
    }

    /// - Returns: nil without a base.
    package init?(_ rows: [SQLRow]) {
        guard let first = Self.all(rows).first else { return nil }
        self = first
    }

    /// The bases of some rows.
    package static func all(_ rows: [SQLRow]) -> [BaseRow] {
        rows.compactMap { row in
            guard let number = row.number(0), let sequence = row.number(1), let hash = row.number(2),
                let version = row.number(3), let bytes = row.number(4), let parts = row.number(6)
            else { return nil }
            return BaseRow(
                number: number, place: LogPlace(sequence: sequence, hash: hash, version: version), byteCount: bytes,
                location: BaseLocation(row.text(5)), parts: parts)
        }
    }
}

extension StoreTables {
    private static let baseColumns = "number, sequence, hash, version, bytes, parts_table, parts"
    /// Before the place of a base that a server has found damaged: nobody uses it any more.
    private static let damageMark = "damaged:"
    private static let isSound = "NOT starts_with(parts_table, '\(damageMark)')"

    /// The last base that is not damaged; no row without one.
    package var lastBase: SQLStatement {
        SQLStatement(
            """
            SELECT \(Self.baseColumns) FROM hearth.bases WHERE store = $1::text AND \(Self.isSound)
            ORDER BY number DESC LIMIT 1
            """, [.text(name)])
    }

    /// The same with the epoch of the lease; without a base one row with the epoch alone.
    var lastBaseAndEpoch: SQLStatement {
        SQLStatement(
            """
            SELECT \(Self.baseColumns), epoch FROM hearth.stores LEFT JOIN (
                SELECT * FROM hearth.bases WHERE store = $1::text AND \(Self.isSound) ORDER BY number DESC LIMIT 1
            ) AS last ON true WHERE name = $1::text
            """, [.text(name)])
    }

    /// The epoch in the row of ``lastBaseAndEpoch``; nil if the database has no row of the store.
    static func epoch(besideBase rows: [SQLRow]) -> UInt64? { rows.first?.number(7) }

    /// How many bases the store has had, by the number of the last one; one row.
    package var baseCount: SQLStatement {
        SQLStatement("SELECT coalesce(max(number), 0) FROM hearth.bases WHERE store = $1::text", [.text(name)])
    }

    /// The base with which the store came into the database; no row if it began there.
    package var migratedBase: SQLStatement {
        SQLStatement(
            "SELECT \(Self.baseColumns) FROM hearth.bases WHERE store = $1::text AND sequence = 0", [.text(name)])
    }

    /// The bases that are kept: the last two, those that a newer one replaced less than some time ago, and those from
    /// which a server starts at this moment. $1 is the store, $2 the time in milliseconds.
    private static let kept = """
        SELECT \(baseColumns) FROM (
            SELECT *, row_number() OVER (ORDER BY number DESC) AS place,
                lag(made) OVER (ORDER BY number DESC) AS replaced
            FROM hearth.bases WHERE store = $1::text AND \(isSound)) AS b
        WHERE place <= 2 OR replaced > clock_timestamp() - $2::bigint * interval '1 millisecond'
            OR EXISTS (SELECT FROM hearth.servers s WHERE s.store = $1::text
                AND starts_with(s.role, '\(fetchingWords)' || b.number || ',')
                AND s.seen > clock_timestamp() - interval '1 minute')
        """

    private static let fetchingWords = "fetching base "

    /// The last group that every server has which reads the log at this moment, or is about to after its base; one row,
    /// null if there is no such server.
    package var groupOfReaders: SQLStatement {
        SQLStatement(
            """
            SELECT min(place) FROM (
                SELECT coalesce(b.sequence, s.sequence) AS place FROM hearth.servers s LEFT JOIN hearth.bases b
                    ON b.store = s.store AND starts_with(s.role, '\(Self.fetchingWords)' || b.number || ',')
                WHERE s.store = $1::text AND s.seen > clock_timestamp() - interval '1 minute') AS r
            WHERE place > 0
            """, [.text(name)])
    }

    /// What a server announces that starts from a base, as its role.
    /// - Parameter percent: of the base that it has.
    package static func fetchingRole(_ number: UInt64, percent: UInt64) -> String {
        "\(fetchingWords)\(number), \(percent)%"
    }

    /// The bases that are kept, the newest first.
    /// - Parameter milliseconds: how long a base is kept after a newer one has replaced it.
    package func keptBases(forMilliseconds milliseconds: UInt64) -> SQLStatement {
        SQLStatement("\(Self.kept) ORDER BY number DESC", [.text(name), .number(milliseconds)])
    }

    /// The folders of bases that were found damaged.
    package var damagedFolders: SQLStatement {
        SQLStatement(
            """
            SELECT substr(parts_table, length($2::text) + 1) FROM hearth.bases
            WHERE store = $1::text AND starts_with(parts_table, $2::text)
            """, [.text(name), .text(Self.damageMark + BaseLocation.folder("").text)])
    }

    /// Has nobody use a base any more, since a file of it is missing or damaged.
    package func markingDamaged(_ number: UInt64) -> SQLStatement {
        SQLStatement(
            """
            UPDATE hearth.bases SET parts_table = $3::text || parts_table
            WHERE store = $1::text AND number = $2::bigint AND \(Self.isSound)
            """, [.text(name), .number(number), .text(Self.damageMark)])
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

    /// Enters a complete base, if the epoch is still the last one and the log has the last group of the base: a standby
    /// that has taken over may lack that group, or have another one. One row if that was done, or had been done
    /// already. The table of the group may be missing.
    package func entering(_ base: BaseRow, epoch: UInt64) -> SQLStatement {
        let place = base.place
        let isInLog =
            place.sequence == 0
            ? ""
            : """
            AND EXISTS (SELECT FROM \(table(of: place.sequence))
                    WHERE sequence = $3::bigint AND hash = $4::bigint AND piece = 0)
            """
        return SQLStatement(
            """
            WITH l AS (SELECT name FROM hearth.stores WHERE name = $1::text AND epoch = $9::bigint \(isInLog)
                FOR SHARE),
            entered AS (INSERT INTO hearth.bases SELECT name, $2::bigint, $3::bigint, $4::bigint, $5::bigint,
                $6::bigint, clock_timestamp(), $7::text, $8::bigint FROM l
                ON CONFLICT (store, number) DO NOTHING RETURNING number)
            SELECT number FROM entered
            UNION ALL SELECT number FROM hearth.bases
                WHERE store = $1::text AND number = $2::bigint AND parts_table = $7::text
            """,
            [
                .text(name), .number(base.number), .number(place.sequence), .number(place.hash), .number(place.version),
                .number(base.byteCount), .text(base.location.text), .number(base.parts), .number(epoch),
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
    /// that end before the table of the group, except the last of them, and those of bases that are not kept.
    ///
    /// - Parameters:
    ///   - sequence: of the group, or of an earlier one while an archive lacks what follows it.
    ///   - base: the last base; tables of later ones are being written. Nothing is superfluous in a database that does
    ///     not have its row: a standby without the row has taken over.
    ///   - milliseconds: how long a base is kept after a newer one has replaced it.
    package func superfluousTables(
        for sequence: UInt64, lastBase base: BaseRow, keptMilliseconds milliseconds: UInt64
    ) -> SQLStatement {
        SQLStatement(
            """
            SELECT tablename::text FROM pg_tables WHERE schemaname = 'hearth' AND (
                starts_with(tablename, $3::text) AND substr(tablename, length($3::text) + 1) ~ '^[0-9]+$'
                    AND substr(tablename, length($3::text) + 1)::bigint < $4::bigint - 1
                OR starts_with(tablename, $5::text) AND substr(tablename, length($5::text) + 1) ~ '^[0-9]+_[0-9]+$'
                    AND split_part(substr(tablename, length($5::text) + 1), '_', 1)::bigint <= $6::bigint
                    AND 'hearth.' || tablename NOT IN (SELECT parts_table FROM (\(Self.kept)) AS k))
            AND EXISTS (SELECT FROM hearth.bases WHERE store = $1::text AND number = $6::bigint
                AND sequence = $7::bigint AND hash = $8::bigint)
            """,
            [
                .text(name), .number(milliseconds), .text("log_\(name)_"), .number(Self.tableNumber(of: sequence)),
                .text("base_\(name)_"), .number(base.number), .number(base.place.sequence), .number(base.place.hash),
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

    /// The bytes of the groups after one in its own table, which must be there; one row.
    package func logBytesInTable(after sequence: UInt64) -> SQLStatement {
        SQLStatement(
            """
            SELECT coalesce(sum(octet_length(data)), 0)::bigint FROM \(table(of: sequence))
            WHERE sequence > $1::bigint
            """, [.number(sequence)])
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
    package var firstTable: String { "log_\(name)_0" }

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

    /// Forgets what was announced under the address of these tables.
    package var endingAnnouncement: SQLStatement {
        SQLStatement(
            "DELETE FROM hearth.servers WHERE store = $1::text AND address = $2::text",
            [.text(name), .text(advertised)])
    }

    /// Notes what this server is doing, for several stores of its database. Rows are changed in the order of the names,
    /// so that two statements do not wait for each other.
    package func announcement(
        of stores: [(name: String, figures: MemberState.Figures)], version: String
    ) -> SQLStatement {
        let stores = stores.sorted { $0.name < $1.name }
        return SQLStatement(
            """
            INSERT INTO hearth.servers
            SELECT store, $1::text, $2::text, role, sequence, version, 0, clock_timestamp()
            FROM unnest(\(Self.texts("$3")), \(Self.texts("$4")), \(Self.numbers("$5")), \(Self.numbers("$6")))
                AS announced (store, role, sequence, version)
            ON CONFLICT (store, address) DO UPDATE SET version = excluded.version, role = excluded.role,
                sequence = excluded.sequence, commit_version = excluded.commit_version, seen = excluded.seen
            """,
            [
                .text(advertised), .text(version), .list(stores.map(\.name)), .list(stores.map(\.figures.role)),
                .list(stores.map(\.figures.place.sequence)), .list(stores.map(\.figures.place.version)),
            ])
    }

    /// Notes how far this server is in several stores of its database, by a commit that waits for the standbys as an
    /// append does. The result has the names of those stores whose log has the last group that was read: the
    /// connection may lead to another server of the database than the one where that was read. The table of a group
    /// may be missing.
    ///
    /// - Parameter stores: at least one: its tables, what this server has applied, and the last group that it has read.
    func confirmation(of stores: [(tables: StoreTables, place: LogPlace, end: LogPlace)]) -> SQLStatement {
        let stores = stores.sorted { $0.tables.name < $1.tables.name }
        let found = stores.map { tables, _, end in
            """
            SELECT '\(tables.name)'::text AS store FROM \(tables.table(of: end.sequence)) WHERE piece = 0
                AND sequence = \(end.sequence) AND hash = '\(Int64(bitPattern: end.hash))'::bigint
            """
        }
        return SQLStatement(
            """
            INSERT INTO hearth.servers
            SELECT store, $1::text, '', 'following', sequence, version, 0, clock_timestamp()
            FROM unnest(\(Self.texts("$2")), \(Self.numbers("$3")), \(Self.numbers("$4")))
                AS confirmed (store, sequence, version)
                JOIN (\(found.joined(separator: " UNION ALL "))) AS found USING (store)
            ON CONFLICT (store, address) DO UPDATE SET sequence = excluded.sequence,
                commit_version = excluded.commit_version, seen = excluded.seen
            RETURNING store
            """,
            [
                .text(advertised), .list(stores.map(\.tables.name)), .list(stores.map(\.place.sequence)),
                .list(stores.map(\.place.version)),
            ])
    }
}
