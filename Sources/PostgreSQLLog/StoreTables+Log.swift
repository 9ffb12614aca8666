// The groups of a store in its series of tables.

internal import Basics
internal import CXXHash
package import Replication
internal import Storage

/// A group with its records.
package struct LoggedGroup: Sendable {
    package let header: GroupHeader
    /// Records: version (8 bytes, little-endian), length (4 bytes), bytes.
    package let records: [UInt8]
    /// Hashes of what the leader derived from the records, as ``MemberHost`` has them; empty if they are not known.
    package let derived: [UInt8]

    package init(header: GroupHeader, records: [UInt8], derived: [UInt8]) {
        self.header = header
        self.records = records
        self.derived = derived
    }

    /// The version of the first record; 0 without one.
    package static func firstVersion(_ records: [UInt8]) -> UInt64 {
        records.count < 8 ? 0 : records.byteSpan.littleEndian64(at: 0)
    }

    /// The hash of records, for ``GroupHeader/contentHash``.
    package static func contentHash(_ records: [UInt8]) -> UInt64 {
        unsafe records.withUnsafeBytes { unsafe XXH3_64bits($0.baseAddress, $0.count) }
    }
}

/// The text of the statement that appends a group.
struct AppendText {
    /// What the text depends on.
    struct Form: Equatable {
        let table: UInt64
        /// Of the group before; nil for the first group.
        let tableBefore: UInt64?
        let pieceCount: Int
    }

    var form: Form?
    var text = ""
}

extension StoreTables {
    /// Groups of one table of the log.
    package static let groupsPerTable: UInt64 = 16_384
    /// Bytes of one row. A larger group is several rows.
    static let rowBytesMax = 512 << 10
    /// Rows that are read at once.
    static let rowsReadMax = 128
    /// Bytes of records after which no further row is read at once.
    static let bytesReadMax = 4 << 20

    /// The number of the table that a group is in.
    package static func tableNumber(of sequence: UInt64) -> UInt64 { (max(sequence, 1) - 1) / groupsPerTable }

    /// The table with a number.
    package func table(_ number: UInt64) -> String { "hearth.log_\(name)_\(number)" }

    func table(of sequence: UInt64) -> String { table(Self.tableNumber(of: sequence)) }

    /// Creates the table that a group belongs to, in an epoch: a leader that was replaced must not bring back a table
    /// that its successor has dropped. In a later epoch the failure is ``SQLFailure/isDivisionByZero``. Bytes are kept
    /// as they are: compression costs more than it saves.
    func creation(of sequence: UInt64, in epoch: Epoch) -> SQLStatement {
        let table = table(of: sequence)
        return SQLStatement(
            script: """
                SELECT 1 / count(*) FROM (SELECT FROM hearth.stores
                    WHERE name = '\(name)' AND epoch = \(Int64(bitPattern: epoch.number)) FOR SHARE) AS lease;
                CREATE TABLE IF NOT EXISTS \(table) (
                    sequence bigint NOT NULL, piece integer NOT NULL, pieces integer NOT NULL, epoch bigint NOT NULL,
                    previous_hash bigint NOT NULL, version bigint NOT NULL, content_hash bigint NOT NULL,
                    hash bigint NOT NULL, data bytea NOT NULL, derived bytea, PRIMARY KEY (sequence, piece));
                ALTER TABLE \(table) ALTER data SET STORAGE EXTERNAL;
                ALTER TABLE \(table) ADD COLUMN IF NOT EXISTS derived bytea;
                """)
    }

    /// Adds what a table of an earlier version lacks. Servers of that version can use it all the same.
    static func upgrade(_ table: String) -> SQLStatement {
        SQLStatement(script: "ALTER TABLE \(table) ADD COLUMN IF NOT EXISTS derived bytea")
    }

    /// Appends a group in one statement: only in its epoch, and only after the group before it. The row of the lease
    /// is locked until the end of the statement, so a claim waits for it. The result is a row: whether the epoch is
    /// that of the lease, and how many rows were inserted.
    /// - Parameter text: of the last append, which is replaced only for another table or number of rows.
    func append(_ group: LoggedGroup, _ text: inout AppendText) -> SQLStatement {
        let header = group.header
        let pieces = pieces(of: group.records)
        let form = AppendText.Form(
            table: Self.tableNumber(of: header.sequence),
            tableBefore: header.sequence == 1 ? nil : Self.tableNumber(of: header.sequence - 1),
            pieceCount: pieces.count)
        if text.form != form { text = AppendText(form: form, text: appendText(form)) }
        return SQLStatement(
            text.text,
            [
                .text(name), .number(header.store.high), .number(header.store.low), .number(header.epoch.number),
                .number(header.sequence), .number(header.previousHash), .number(header.version),
                .number(header.contentHash), .number(header.hash), .number(UInt64(pieces.count)), .bytes(group.derived),
            ] + pieces.map { .bytes($0) }, isRepeated: pieces.count == 1)
    }

    private func appendText(_ form: AppendText.Form) -> String {
        let chain =
            form.tableBefore.map {
                "SELECT 1 FROM \(table($0)) WHERE sequence = $5::bigint - 1 AND hash = $6::bigint AND piece = 0"
            } ?? "SELECT 1"
        let values = (0..<form.pieceCount).map { "(\($0), $\($0 + 12)::bytea)" }.joined(separator: ", ")
        return """
            WITH lease AS (SELECT 1 FROM hearth.stores WHERE name = $1::text AND high = $2::bigint
                AND low = $3::bigint AND epoch = $4::bigint FOR SHARE),
            chain AS (\(chain)),
            added AS (INSERT INTO \(table(form.table))
                SELECT $5::bigint, piece, $10::bigint, $4::bigint, $6::bigint, $7::bigint, $8::bigint, $9::bigint, data,
                    CASE WHEN piece = 0 THEN $11::bytea END
                FROM lease, chain, (VALUES \(values)) AS pieces (piece, data) RETURNING 1)
            SELECT EXISTS (SELECT FROM lease), (SELECT count(*) FROM added)
            """
    }

    private func pieces(of records: [UInt8]) -> [[UInt8]] {
        if !records.isEmpty, records.count <= Self.rowBytesMax { return [records] }
        return stride(from: 0, to: records.count, by: Self.rowBytesMax).map { start in
            Array(records[start..<min(start + Self.rowBytesMax, records.count)])
        }
    }

    /// The outcome of an append as the state machine wants it.
    func appendReply(_ rows: [SQLRow]) -> LogReply {
        guard let row = rows.first, row.number(0) == 1 else { return .epochDiffers }
        return row.number(1) == 0 ? .chainDiffers : .appended
    }

    /// The hash of a group; no row if it is not there. The table may be missing.
    package func hash(of sequence: UInt64) -> SQLStatement {
        SQLStatement(
            "SELECT hash FROM \(table(of: sequence)) WHERE sequence = $1::bigint AND piece = 0", [.number(sequence)])
    }

    /// The last group of a table that is not after a version: sequence, hash, version. No row if there is none.
    static func lastPlace(upTo version: UInt64, in table: String) -> SQLStatement {
        SQLStatement(
            """
            SELECT sequence, hash, version FROM \(table) WHERE piece = 0 AND version <= $1::bigint
            ORDER BY sequence DESC LIMIT 1
            """, [.number(version)])
    }

    /// Reads rows of one table, with the closed time and the epoch of the same moment.
    /// - Parameters:
    ///   - first: the group to begin with.
    ///   - skipsFirst: the records of this group are not wanted, only its header.
    ///   - bytesMax: no further row is read after so many bytes of records.
    func read(
        table number: UInt64, from first: UInt64, skipsFirst: Bool, rowsMax: Int, bytesMax: Int = .max
    ) -> SQLStatement {
        let data = skipsFirst ? "CASE WHEN sequence = $2::bigint THEN ''::bytea ELSE data END" : "data"
        let wanted = skipsFirst ? "AND (sequence > $2::bigint OR piece = 0)" : ""
        return SQLStatement(
            """
            SELECT closed, sequence, piece, pieces, found.epoch, previous_hash, version, content_hash, hash, records,
                derived, stores.epoch
            FROM hearth.stores LEFT JOIN (
                SELECT *, sum(octet_length(records)) OVER (ORDER BY sequence, piece ROWS UNBOUNDED PRECEDING)
                    - octet_length(records) AS bytes_before
                FROM (
                    SELECT sequence, piece, pieces, epoch, previous_hash, version, content_hash, hash,
                        \(data) AS records, derived
                    FROM \(table(number)) WHERE sequence >= $2::bigint \(wanted)
                    ORDER BY sequence, piece LIMIT \(rowsMax)) AS part) AS found ON bytes_before < $3::bigint
            WHERE name = $1::text ORDER BY sequence, piece
            """, [.text(name), .number(first), .number(UInt64(bytesMax))])
    }
}

/// Rows of the log put together to groups.
struct LogRows {
    /// Whole groups, in order.
    private(set) var groups: [LoggedGroup] = []
    /// The hash in the row of the place after which was read; nil if it has no row.
    private(set) var placeHash: UInt64?
    /// A time that the leader had closed when the rows were read.
    private(set) var closed: UInt64 = 0
    /// The epoch of the lease when the rows were read; nil if the database has no row of the store.
    private(set) var epoch: UInt64?
    /// Pieces of the group that was cut off at the end; 0 if none was.
    private(set) var piecesMissing = 0
    /// The last result has as many rows or bytes as were asked for: the table may have further ones.
    private(set) var isCut = false

    /// Adds the rows of a result.
    /// - Parameters:
    ///   - place: the group whose row only shows that it is there.
    ///   - store: whose groups they are.
    ///   - rowsMax: rows that were asked for.
    ///   - bytesMax: bytes of records after which no further row was read.
    /// - Returns: why they cannot be right; nil if they can.
    mutating func add(
        _ rows: [SQLRow], after place: LogPlace, store: StoreIdentity, rowsMax: Int, bytesMax: Int = .max
    ) -> String? {
        isCut = rows.count >= rowsMax || rows.reduce(0) { $0 + ($1.columns[9]?.count ?? 0) } >= bytesMax
        closed = rows.first?.number(0) ?? closed
        epoch = rows.first?.number(11)
        var index = 0
        while index < rows.count, let sequence = rows[index].number(1) {
            if sequence <= place.sequence {
                placeHash = rows[index].number(8)
                index += 1
                continue
            }
            let count = Int(clamping: rows[index].number(3) ?? 0)
            guard count > 0 else { return "group \(sequence) has no pieces" }
            guard count <= rows.count - index else {
                piecesMissing = count
                return isCut ? nil : "group \(sequence) lacks pieces"
            }
            let pieces = rows[index..<index + count]
            guard pieces.enumerated().allSatisfy({ $1.number(1) == sequence && $1.number(2) == UInt64($0) }) else {
                return "group \(sequence) lacks pieces"
            }
            let group = LoggedGroup(
                header: GroupHeader(
                    store: store, epoch: Epoch(rows[index].number(4) ?? 0), sequence: sequence,
                    previousHash: rows[index].number(5) ?? 0, version: rows[index].number(6) ?? 0,
                    contentHash: rows[index].number(7) ?? 0),
                records: Array(pieces.map { $0.bytes(9) }.joined()), derived: rows[index].bytes(10))
            guard LoggedGroup.contentHash(group.records) == group.header.contentHash,
                rows[index].number(8) == group.header.hash
            else { return "group \(sequence) is damaged: its hash is another one" }
            groups.append(group)
            index += count
        }
        return nil
    }
}
