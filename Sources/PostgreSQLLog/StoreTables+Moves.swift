// Moves of databases between the stores that share them: a move is a state of the row of its database.
//
//     moving_to    the store to which the database moves; null if it does not
//     generation   counts the moves, and those that were given up
//     releasing    the source releases the database: the move cannot be given up any more
//     moved, note  for people: documents that were copied, and what holds the move up or has ended it
//
// Every change names the generation that it belongs to, so one that comes late changes nothing (Replication has the
// state machine).

package import Replication

/// A database that moves, or was asked about.
package struct DatabaseMoveRow: Sendable {
    package let name: String
    package let row: DatabaseRow
    /// Documents that were copied so far.
    package let documents: UInt64
    /// What holds the move up, or why it was given up; empty for nothing.
    package let note: String
}

extension StoreTables {
    /// Adds the columns of moves, unless they exist.
    static let columnsOfMoves = """
        ALTER TABLE hearth.databases ADD COLUMN IF NOT EXISTS moving_to text,
            ADD COLUMN IF NOT EXISTS generation bigint NOT NULL DEFAULT 0,
            ADD COLUMN IF NOT EXISTS releasing boolean NOT NULL DEFAULT false,
            ADD COLUMN IF NOT EXISTS moved bigint NOT NULL DEFAULT 0,
            ADD COLUMN IF NOT EXISTS note text NOT NULL DEFAULT '';
        """

    private static let moveColumns = "name, store, moving_to, generation, releasing, moved, note"

    /// Reads rows of ``row(of:)`` and ``moves``.
    package static func moveRows(_ rows: [SQLRow]) -> [DatabaseMoveRow] {
        rows.map { row in
            DatabaseMoveRow(
                name: row.text(0),
                row: DatabaseRow(
                    store: row.text(1), movingTo: row.columns[2] == nil ? nil : row.text(2),
                    generation: row.number(3) ?? 0, isReleasing: row.number(4) == 1),
                documents: row.number(5) ?? 0, note: row.text(6))
        }
    }

    /// A number pair that changes with any row: how many there are, their generations, the moves under way.
    package static let databasesMark = SQLStatement(
        "SELECT count(*), coalesce(sum(generation), 0)::bigint, count(moving_to) FROM hearth.databases")

    /// The row of a database; none if no store has it.
    package static func row(of database: String) -> SQLStatement {
        SQLStatement("SELECT \(moveColumns) FROM hearth.databases WHERE name = $1::text", [.text(database)])
    }

    /// The rows of all databases that move.
    package static let moves = SQLStatement(
        "SELECT \(moveColumns) FROM hearth.databases WHERE moving_to IS NOT NULL ORDER BY name")

    /// Begins a move of a database that does not move, if both stores share. From then on both stores may have records
    /// that earlier versions do not know. One row: how many moves were begun.
    ///
    /// - Parameter generation: of the latest move that the stores know of. It is above that of the row if the table was
    ///   restored to before the move.
    package static func moving(_ database: String, to store: String, after generation: UInt64 = 0) -> SQLStatement {
        SQLStatement(
            """
            WITH begun AS (
                UPDATE hearth.databases d SET moving_to = $2::text, releasing = false, moved = 0, note = '',
                    generation = greatest(d.generation, $3::bigint) + 1
                WHERE d.name = $1::text AND d.store <> $2::text AND d.moving_to IS NULL
                    AND (SELECT count(*) FROM hearth.stores WHERE name IN (d.store, $2::text) AND \(shares)) = 2
                RETURNING d.store),
            raised AS (
                UPDATE hearth.stores s SET level = \(movesLevel) FROM begun
                WHERE s.name IN (begun.store, $2::text) AND s.level = \(sharingLevel) RETURNING s.name)
            SELECT count(*) FROM begun
            """, [.text(database), .text(store), .number(generation)])
    }

    /// Gives a move up, unless the source releases the database. One row if that was done.
    package static func givingUp(_ database: String, generation: UInt64, note: String) -> SQLStatement {
        SQLStatement(
            """
            UPDATE hearth.databases SET moving_to = NULL, generation = generation + 1, note = $3::text
            WHERE name = $1::text AND generation = $2::bigint AND moving_to IS NOT NULL AND NOT releasing RETURNING name
            """, [.text(database), .number(generation), .text(note)])
    }

    /// Enters that the source releases the database. One row if the row is that of the move.
    package static func announcingRelease(_ database: String, generation: UInt64) -> SQLStatement {
        SQLStatement(
            """
            UPDATE hearth.databases SET releasing = true
            WHERE name = $1::text AND generation = $2::bigint AND moving_to IS NOT NULL RETURNING name
            """, [.text(database), .number(generation)])
    }

    /// Enters that the target has the database. One row if the row is that of the move.
    package static func recordingMove(_ database: String, generation: UInt64) -> SQLStatement {
        SQLStatement(
            """
            UPDATE hearth.databases SET store = moving_to, moving_to = NULL, releasing = false, note = ''
            WHERE name = $1::text AND generation = $2::bigint AND moving_to IS NOT NULL RETURNING name
            """, [.text(database), .number(generation)])
    }

    /// Enters how far a move is.
    package static func noting(
        _ database: String, generation: UInt64, documents: UInt64, note: String
    ) -> SQLStatement {
        SQLStatement(
            """
            UPDATE hearth.databases SET moved = $3::bigint, note = $4::text
            WHERE name = $1::text AND generation = $2::bigint AND moving_to IS NOT NULL
            """, [.text(database), .number(generation), .number(documents), .text(note)])
    }
}
