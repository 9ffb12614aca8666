// The tables of a store in PostgreSQL, and the statements about its lease.
//
//     hearth.stores                a row for each store: its lease, its history
//     hearth.log_NAME_N            groups 16,384 N + 1 ... 16,384 (N + 1) of a store; a group is one or more rows
//     hearth.bases                 a row for each complete base: where it lies, and what it has
//     hearth.base_NAME_N           the files of a base, in pieces, unless they are in a directory
//     hearth.servers               what each server said last, for people
//
// Only plain SQL is used. Numbers of 64 bits are `bigint` with the same bits. A log table is dropped as a whole when a
// base covers it.

internal import Basics
package import Replication
package import Storage

/// The statements about one store. A plain value.
package struct StoreTables: Sendable {
    /// Of the store in the database: lower-case letters, digits and `_`.
    package let name: String
    /// `HOST:PORT` of this server, as others reach it.
    package let advertised: String

    package init(name: String, advertised: String) {
        precondition(Self.admits(name), "the name of a store is part of names of tables")
        self.name = name
        self.advertised = advertised
    }

    /// Whether a text may be the name of a store.
    package static func admits(_ name: String) -> Bool {
        (1...30).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// Creates what all stores have in common, unless it exists.
    package static let creation = SQLStatement(
        script: """
            CREATE SCHEMA IF NOT EXISTS hearth;
            CREATE TABLE IF NOT EXISTS hearth.stores (
                name text PRIMARY KEY, high bigint NOT NULL, low bigint NOT NULL, timeline bigint NOT NULL,
                level integer NOT NULL, epoch bigint NOT NULL, renewals bigint NOT NULL,
                holder_high bigint NOT NULL, holder_low bigint NOT NULL, address text NOT NULL,
                ceiling bigint NOT NULL, closed bigint NOT NULL, renewed timestamptz NOT NULL);
            CREATE TABLE IF NOT EXISTS hearth.bases (
                store text NOT NULL, number bigint NOT NULL, sequence bigint NOT NULL, hash bigint NOT NULL,
                version bigint NOT NULL, bytes bigint NOT NULL, made timestamptz NOT NULL,
                parts_table text NOT NULL, parts bigint NOT NULL, PRIMARY KEY (store, number));
            CREATE TABLE IF NOT EXISTS hearth.servers (
                store text NOT NULL, address text NOT NULL, version text NOT NULL, role text NOT NULL,
                sequence bigint NOT NULL, commit_version bigint NOT NULL, lag bigint NOT NULL,
                seen timestamptz NOT NULL, PRIMARY KEY (store, address));
            """)

    /// Whether the tables exist; one row with a truth value.
    package static let exists = SQLStatement("SELECT to_regclass('hearth.servers') IS NOT NULL")

    /// The level of the records that this version writes and reads.
    package static let level: UInt64 = 1
    /// The level of a store that is being moved out of the database: no server leads it. Its servers wait, since the
    /// cluster may get it back (StoreTables+Leaving).
    package static let leavingLevel: UInt64 = 999_999
    /// The level of a store that was moved out of the database: no server leads or follows it any more.
    package static let movedLevel: UInt64 = 1_000_000

    /// A parameter that is a list, as an array of texts.
    static func texts(_ parameter: String) -> String { "string_to_array(\(parameter)::text, chr(10))" }

    /// A parameter that is a list, as an array of numbers.
    static func numbers(_ parameter: String) -> String { "\(texts(parameter))::bigint[]" }

    /// The names of the stores that have an identity and were not moved out of the database.
    package static func names(of store: StoreIdentity) -> SQLStatement {
        SQLStatement(
            "SELECT name FROM hearth.stores WHERE high = $1::bigint AND low = $2::bigint AND level <> \(movedLevel)",
            [.number(store.high), .number(store.low)])
    }

    // MARK: The lease

    private static let rowColumns = """
        high, low, epoch, renewals, holder_high, holder_low, ceiling, closed, address, timeline, level, \
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
        """

    /// Executes a change and returns the row after it, or the row as it is if the change was not made.
    func changing(_ change: String, _ parameters: [SQLParameter]) -> SQLStatement {
        SQLStatement(
            """
            WITH changed AS (\(change) RETURNING \(Self.rowColumns))
            SELECT true, * FROM changed
            UNION ALL SELECT false, \(Self.rowColumns) FROM hearth.stores
            WHERE name = $1::text AND NOT EXISTS (SELECT FROM changed)
            """, [.text(name)] + parameters)
    }

    /// The statement of the state machine as SQL.
    /// - Parameters:
    ///   - closed: for a renewal: a time that this leader has closed, in microseconds.
    ///   - timeline: for a new store: where its history begins, in microseconds.
    package func statement(_ statement: LeaseStatement, closed: UInt64, timeline: UInt64) -> SQLStatement {
        switch statement {
        case .create(let store, let holder):
            changing(
                """
                INSERT INTO hearth.stores VALUES ($1::text, $2::bigint, $3::bigint, $4::bigint, $5::bigint, 1, 1,
                    $6::bigint, $7::bigint, $8::text, 0, 0, clock_timestamp()) ON CONFLICT (name) DO NOTHING
                """,
                [
                    .number(store.high), .number(store.low), .number(timeline), .number(Self.level),
                    .number(holder.high), .number(holder.low), .text(advertised),
                ])
        case .observe:
            SQLStatement("SELECT false, \(Self.rowColumns) FROM hearth.stores WHERE name = $1::text", [.text(name)])
        case .claim(let epoch, let renewals, let holder):
            changing(
                """
                UPDATE hearth.stores SET epoch = epoch + 1, renewals = renewals + 1, holder_high = $4::bigint,
                    holder_low = $5::bigint, address = $6::text, renewed = clock_timestamp()
                WHERE name = $1::text AND epoch = $2::bigint AND renewals = $3::bigint
                """,
                [
                    .number(epoch.number), .number(renewals), .number(holder.high), .number(holder.low),
                    .text(advertised),
                ])
        case .renew(let epoch, let holder, let ceiling):
            changing(
                """
                UPDATE hearth.stores SET renewals = renewals + 1, ceiling = greatest(ceiling, $5::bigint),
                    closed = greatest(closed, $6::bigint), address = $7::text, renewed = clock_timestamp()
                WHERE name = $1::text AND epoch = $2::bigint AND holder_high = $3::bigint AND holder_low = $4::bigint
                """,
                [
                    .number(epoch.number), .number(holder.high), .number(holder.low), .number(ceiling),
                    .number(closed), .text(advertised),
                ])
        case .raiseEpoch(let epoch, let holder):
            changing(
                """
                UPDATE hearth.stores SET epoch = epoch + 1, renewals = renewals + 1
                WHERE name = $1::text AND epoch = $2::bigint AND holder_high = $3::bigint AND holder_low = $4::bigint
                """, [.number(epoch.number), .number(holder.high), .number(holder.low)])
        }
    }

    /// Where the name of the store is in the rows of ``rows(_:)``; the columns before are those of ``StoreRow``.
    static let rowsNameColumn = 13

    /// The rows of several stores of one database; those of which the lease is claimed are changed, if they are as they
    /// were seen. A row that something else has locked is left as it is.
    ///
    /// - Parameter statements: `observe` and `claim`, at least one; of the same server.
    static func rows(_ statements: [(tables: StoreTables, statement: LeaseStatement)]) -> SQLStatement {
        let names = SQLParameter.list(statements.map(\.tables.name))
        var claims: (names: [String], numbers: [[UInt64]]) = ([], [[], [], [], []])
        for (tables, statement) in statements {
            guard case .claim(let epoch, let renewals, let holder) = statement else { continue }
            claims.names.append(tables.name)
            for (index, number) in [epoch.number, renewals, holder.high, holder.low].enumerated() {
                claims.numbers[index].append(number)
            }
        }
        guard let advertised = statements.first?.tables.advertised, !claims.names.isEmpty else {
            return SQLStatement(
                "SELECT false, \(rowColumns), name FROM hearth.stores WHERE name = ANY (\(texts("$1")))", [names])
        }
        return SQLStatement(
            """
            WITH wanted AS (SELECT * FROM unnest(
                    \(texts("$3")), \(numbers("$4")), \(numbers("$5")), \(numbers("$6")), \(numbers("$7")))
                AS claims (store, epoch_seen, renewals_seen, claimer_high, claimer_low)),
            free AS (SELECT name AS store FROM hearth.stores WHERE name IN (SELECT store FROM wanted)
                FOR NO KEY UPDATE SKIP LOCKED),
            changed AS (
                UPDATE hearth.stores SET epoch = epoch + 1, renewals = renewals + 1, holder_high = claimer_high,
                    holder_low = claimer_low, address = $2::text, renewed = clock_timestamp()
                FROM wanted JOIN free USING (store)
                WHERE name = store AND epoch = epoch_seen AND renewals = renewals_seen
                RETURNING \(rowColumns), name)
            SELECT true, * FROM changed
            UNION ALL SELECT false, \(rowColumns), name FROM hearth.stores
            WHERE name = ANY (\(texts("$1"))) AND name NOT IN (SELECT name FROM changed)
            """, [names, .text(advertised), .list(claims.names)] + claims.numbers.map { .list($0) })
    }

    /// Begins a new time line of the store: states of earlier times that clients have are not of its history. The next
    /// leader's versions are above its start.
    ///
    /// - Parameters:
    ///   - time: no later time was given out in the history that is lost, as far as is known, in microseconds.
    ///   - last: nothing is changed if the time line began after this time already.
    package func timeline(after time: UInt64, unlessBegunAfter last: UInt64) -> SQLStatement {
        let start = """
            greatest(timeline, ceiling, $2::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) + 1
            """
        return changing(
            """
            UPDATE hearth.stores SET timeline = \(start), ceiling = \(start)
            WHERE name = $1::text AND timeline <= $3::bigint
            """, [.number(time), .number(last)])
    }

    /// Keeps other commands from making the store of a directory, until the session ends; one row with a truth value:
    /// false if another one makes it. What an earlier attempt has left can be removed meanwhile.
    package var claimingAdoption: SQLStatement {
        SQLStatement("SELECT pg_try_advisory_lock(hashtextextended($1::text, 0))", [.text("hearth migrate \(name)")])
    }

    /// Creates the row of a store that was made elsewhere, with its first base, unless there is a row. One row if that
    /// was done: whether its rules became those of the cluster.
    ///
    /// - Parameter rules: of the store, with their number; they become those of a cluster that has none. The number is
    ///   0 for no rules.
    package func adoption(
        _ store: StoreIdentity, timeline: UInt64, ceiling: UInt64, base: BaseRow, rules: (number: UInt64, text: String)
    ) -> SQLStatement {
        SQLStatement(
            """
            WITH adopted AS (INSERT INTO hearth.stores VALUES ($1::text, $2::bigint, $3::bigint, $4::bigint,
                \(Self.level), 1, 1, 0, 0, '', $5::bigint, 0, clock_timestamp()) ON CONFLICT (name) DO NOTHING
                RETURNING name),
            ruled AS (INSERT INTO hearth.rules SELECT $10::bigint, clock_timestamp(), $11::text FROM adopted
                WHERE $10::bigint > 0 AND NOT EXISTS (SELECT FROM hearth.rules) RETURNING number),
            based AS (INSERT INTO hearth.bases SELECT name, 1, 0, 0, $6::bigint, $7::bigint, clock_timestamp(),
                $8::text, $9::bigint FROM adopted RETURNING number)
            SELECT EXISTS (SELECT FROM ruled) FROM based
            """,
            [
                .text(name), .number(store.high), .number(store.low), .number(timeline), .number(ceiling),
                .number(base.place.version), .number(base.byteCount), .text(base.location.text), .number(base.parts),
                .number(rules.number), .text(rules.text),
            ])
    }

    /// Creates the row of a store that was made elsewhere, unless there is one: nobody holds the lease.
    package func adoption(_ store: StoreIdentity, timeline: UInt64, ceiling: UInt64) -> SQLStatement {
        changing(
            """
            INSERT INTO hearth.stores VALUES ($1::text, $2::bigint, $3::bigint, $4::bigint, $5::bigint, 1, 1, 0, 0, '',
                $6::bigint, 0, clock_timestamp()) ON CONFLICT (name) DO NOTHING
            """,
            [
                .number(store.high), .number(store.low), .number(timeline), .number(Self.level), .number(ceiling),
            ])
    }
}

/// The row of a store, with what the state machine does not need.
package struct StoreRow: Sendable {
    package let lease: LeaseRow
    /// Whether the statement changed it.
    package let isDone: Bool
    /// A time that a leader has closed, in microseconds.
    package let closed: UInt64
    /// `HOST:PORT` of the holder; empty before the first.
    package let address: String
    /// Where the history of the store begins, in microseconds.
    package let timeline: UInt64
    /// The highest level of records that may be in the log.
    package let level: UInt64
    /// The clock of the database, in microseconds since 1970.
    package let clock: UInt64

    /// - Returns: nil if the statement has no row: another server has just created the store, or nobody has.
    package init?(_ rows: [SQLRow]) {
        guard let row = rows.first, row.columns.count == 13 else { return nil }
        func number(_ column: Int) -> UInt64 { row.number(column) ?? 0 }
        lease = LeaseRow(
            store: StoreIdentity(high: number(1), low: number(2)), epoch: Epoch(number(3)), renewals: number(4),
            holder: ServerIdentity(high: number(5), low: number(6)), ceiling: number(7))
        isDone = number(0) == 1
        closed = number(8)
        address = row.text(9)
        timeline = number(10)
        level = number(11)
        clock = number(12)
    }
}
