// Which store has a database, where the stores of a cluster share the databases.
//
//     hearth.databases   a row for each database; a row never goes, and changes when the database moves
//
// The table is in the home database. A store may lie in another database (StoreTables+Places).
//
// A store shares once the rows have all databases that it had before (level 2 of its row). From then on it takes no
// database without a row. Only when all stores share is a new database put in one: then none of them can have it. A
// store to or from which a database has moved has level 3 (StoreTables+Moves).

/// What the databases of a cluster may take, all stores together.
package struct DatabaseLimits: Sendable {
    package let count: UInt64
    /// Bytes of memory in each server.
    package let bytes: UInt64
    /// Of them, those that a database takes without its name.
    package let bytesEach: UInt64

    package init(count: UInt64, bytes: UInt64, bytesEach: UInt64) {
        self.count = count
        self.bytes = bytes
        self.bytesEach = bytesEach
    }
}

extension StoreTables {
    /// The level of a store that has only databases with a row. A server of a single store does not serve it.
    package static let sharingLevel: UInt64 = 2
    /// The level of a store that may have records of moves, and shares.
    package static let movesLevel: UInt64 = 3

    /// Whether the level of a store's own row says that it shares.
    package static func isSharing(level: UInt64) -> Bool { (sharingLevel...movesLevel).contains(level) }

    /// Whether a store shares, as a condition on its row in the home database.
    static let shares = "(level BETWEEN \(sharingLevel) AND \(movesLevel) OR level = \(placedSharingLevel))"

    /// Creates the table of databases, unless it exists, and adds what one of an earlier version lacks.
    package static let creationOfDatabases = SQLStatement(
        script: """
            CREATE TABLE IF NOT EXISTS hearth.databases (name text PRIMARY KEY, store text NOT NULL);
            CREATE INDEX IF NOT EXISTS databases_store ON hearth.databases (store);
            \(columnsOfMoves)
            """)

    /// Whether there is the table of databases; one row with a truth value.
    package static let sharesDatabases = SQLStatement("SELECT to_regclass('hearth.databases') IS NOT NULL")

    /// How many databases the store has.
    package var ownDatabaseCount: SQLStatement {
        SQLStatement("SELECT count(*) FROM hearth.databases WHERE store = $1::text", [.text(name)])
    }

    /// All databases: name and store.
    package static let databases = SQLStatement("SELECT name, store FROM hearth.databases")

    /// The store of a database; no row if none has it.
    package static func store(of database: String) -> SQLStatement {
        SQLStatement("SELECT store FROM hearth.databases WHERE name = $1::text", [.text(database)])
    }

    /// Puts a database in the store that has the fewest, unless a store has it, or one of the stores does not share
    /// yet, or there are too many databases.
    ///
    /// - Parameters:
    ///   - candidates: the names of the stores that may get it.
    ///   - stores: the names of all stores.
    package static func adding(
        _ database: String, to candidates: [String], of stores: [String], _ limits: DatabaseLimits
    ) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO hearth.databases (name, store)
            SELECT $1::text, (
                SELECT s.name FROM hearth.stores s LEFT JOIN hearth.databases d ON d.store = s.name
                WHERE s.name = ANY (string_to_array($7::text, ',')) GROUP BY s.name
                ORDER BY count(d.name), s.name LIMIT 1)
            WHERE (SELECT count(*) FROM hearth.stores
                WHERE name = ANY (string_to_array($2::text, ',')) AND \(shares)) = $3::bigint
            AND (SELECT count(*) < $4::bigint
                    AND coalesce(sum(octet_length(name) + $6::bigint), 0) + octet_length($1::text) + $6::bigint
                        <= $5::bigint
                FROM hearth.databases)
            ON CONFLICT (name) DO NOTHING
            """,
            [
                .text(database), .text(stores.joined(separator: ",")), .number(UInt64(stores.count)),
                .number(limits.count), .number(limits.bytes), .number(limits.bytesEach),
                .text(candidates.joined(separator: ",")),
            ])
    }

    /// How many of some stores share.
    package static func sharingCount(of stores: [String]) -> SQLStatement {
        SQLStatement(
            """
            SELECT count(*) FROM hearth.stores
            WHERE name = ANY (string_to_array($1::text, ',')) AND \(shares)
            """, [.text(stores.joined(separator: ","))])
    }

    /// Whether the server of a row can lead the store. One that starts from a base, cannot read the log or has a wrong
    /// clock announces another role.
    private static let canLead = """
        seen > clock_timestamp() - interval '10 seconds' AND role IN ('following', 'leading')
        """

    /// The addresses of the servers that can lead all of some stores.
    package static func servers(of stores: [String]) -> SQLStatement {
        SQLStatement(
            """
            SELECT address FROM hearth.servers WHERE store = ANY (string_to_array($1::text, ',')) AND \(canLead)
            GROUP BY address HAVING count(*) = $2::bigint
            """, [.text(stores.joined(separator: ",")), .number(UInt64(stores.count))])
    }

    /// The servers of some stores: the name of a store and the address of a server that can lead it, for each.
    package static func servers(ofEach stores: [String]) -> SQLStatement {
        SQLStatement(
            """
            SELECT store, address FROM hearth.servers WHERE store = ANY (\(texts("$1"))) AND \(canLead)
            """, [.list(stores)])
    }

    /// Gives the lease up, which this server holds in an epoch, for another server: nobody else claims it for some
    /// seconds. What this server appends later is refused. One row if that was done.
    package func handingOver(in epoch: UInt64, to address: String) -> SQLStatement {
        SQLStatement(
            """
            UPDATE hearth.stores SET epoch = epoch + 1, renewals = renewals + 1, holder_high = 0, holder_low = 0,
                address = $3::text
            WHERE name = $1::text AND epoch = $2::bigint RETURNING name
            """, [.text(name), .number(epoch), .text(address)])
    }

    /// Adds the row of a database that the store has, unless there is one.
    package func entering(_ database: String) -> SQLStatement {
        SQLStatement(
            "INSERT INTO hearth.databases (name, store) VALUES ($1::text, $2::text) ON CONFLICT (name) DO NOTHING",
            [.text(database), .text(name)])
    }

    /// The store has only databases with a row, from an epoch on in which this server leads. One row if that is so.
    ///
    /// - Parameter level: of a store that shares. One that does not lie in the home database has ``movesLevel`` from
    ///   the beginning: a move cannot raise it in the statement that changes the row of the database.
    package func sharing(in epoch: UInt64, level: UInt64 = sharingLevel) -> SQLStatement {
        SQLStatement(
            """
            UPDATE hearth.stores SET level = greatest(level, \(level))
            WHERE name = $1::text AND (epoch = $2::bigint OR level BETWEEN \(level) AND \(Self.movesLevel))
                AND level <= \(Self.movesLevel)
            RETURNING name
            """, [.text(name), .number(epoch)])
    }
}
