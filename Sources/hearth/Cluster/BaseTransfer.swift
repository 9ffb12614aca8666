// Bases in the tables of the database: files of a directory as of a group of the log, in pieces.

import DocumentStore
import PostgreSQLLog
import Replication
import Storage

/// Writes and reads the files of a base.
enum BaseTransfer {
    private static let pieceBytes = 512 << 10
    private static let piecesRead: UInt64 = 16

    /// Writes the files of a store to a new table, which nobody knows yet.
    ///
    /// - Parameter mayContinue: asked before each piece; gets the bytes written so far.
    /// - Returns: the row to enter; nil if it was given up.
    static func write(
        _ base: StoreBase, at place: LogPlace, number: UInt64, _ tables: StoreTables, _ session: PostgreSQLSession,
        mayContinue: (Int) -> Bool
    ) throws -> BaseRow? {
        // Makers of the past may still be writing to their tables.
        let table = tables.baseTable(number, suffix: .random(in: 0...UInt32.max))
        try session.run(StoreTables.creation(ofBase: table))
        var byteCount = 0
        for (part, file) in base.parts.enumerated() {
            var piece: UInt64 = 0
            var isWanted = true
            try pieces(of: file, in: base) { bytes in
                guard isWanted, mayContinue(byteCount) else { return isWanted = false }
                try session.run(StoreTables.adding(bytes, to: table, part: UInt64(part), piece: piece, path: file.path))
                piece += 1
                byteCount += bytes.count
            }
            guard isWanted else {
                try session.run(StoreTables.dropping(table))
                return nil
            }
        }
        return BaseRow(
            number: number, place: place, byteCount: UInt64(base.byteCount),
            location: .table(table), parts: UInt64(base.parts.count))
    }

    /// Lends the pieces of a file; a file without bytes has one too.
    private static func pieces(
        of file: StoreBase.Part, in base: StoreBase, _ body: ([UInt8]) throws -> Void
    ) throws {
        if file.byteCount == 0 { try body([]) }
        try base.read(file, body)
    }

    /// Compares what is in a table of the database with the files that were written there.
    ///
    /// - Parameter progress: gets the bytes compared so far.
    /// - Throws: a `CommandFailure` that names the first file that differs.
    static func compare(
        _ base: StoreBase, with table: String, _ session: PostgreSQLSession, progress: (Int) -> Void
    ) throws {
        var byteCount = 0
        for (part, file) in base.parts.enumerated() {
            var piece: UInt64 = 0
            func differs() -> CommandFailure {
                CommandFailure("the copy of \(file.path) in the database differs from the file at piece \(piece)")
            }
            try pieces(of: file, in: base) { bytes in
                let found = try session.run(
                    StoreTables.pieces(of: table, part: UInt64(part), from: piece, count: 1)
                ).first
                guard let found, found.number(0) == piece, found.text(1) == file.path, found.bytes(2) == bytes else {
                    throw differs()
                }
                piece += 1
                byteCount += bytes.count
                progress(byteCount)
            }
            guard
                try session.run(StoreTables.pieces(of: table, part: UInt64(part), from: piece, count: 1)).isEmpty
            else { throw differs() }
        }
    }

    /// Receives all files of a base from its table.
    /// - Parameter progress: gets the bytes received.
    /// - Throws: `corrupt` if the table lacks some, or does not exist.
    static func receive(
        _ base: BaseRow, from table: String, _ session: PostgreSQLSession, _ receiver: BaseReceiver,
        progress: (Int) -> Void
    ) throws {
        for part in 0..<base.parts {
            var piece: UInt64 = 0
            while true {
                let rows = try session.run(
                    StoreTables.pieces(of: table, part: part, from: piece, count: piecesRead))
                for row in rows {
                    guard row.number(0) == piece else { throw missing(base) }
                    if piece == 0 { try receiver.begin(row.text(1)) }
                    try receiver.append(row.bytes(2))
                    piece += 1
                }
                progress(receiver.byteCount)
                if rows.count < Int(piecesRead) { break }
            }
            if piece == 0 { throw missing(base) }
        }
        guard receiver.byteCount == Int(clamping: base.byteCount) else { throw missing(base) }
    }

    private static func missing(_ base: BaseRow) -> StorageError {
        StorageError(.corrupt, "the base \(base.number) lacks pieces, or a newer one has replaced it")
    }
}
