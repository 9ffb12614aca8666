// Records of CSV (RFC 4180): cells between commas, records between line ends, quotes around cells that have either.

/// Reads records one after the other. Memory is bounded by the longest record.
final class CSVReader {
    /// One cell. An empty text is quoted, and no value is not.
    struct Cell: Equatable {
        var text: String
        var isQuoted = false
    }

    /// Bytes of a record.
    static let recordBytesMax = 16 << 20
    private static let readBytes = 256 << 10

    private let source: any ByteSource
    /// What the input is called in messages.
    let name: String
    private var buffer: [UInt8] = []
    private var used = 0
    private var isAtEnd = false
    /// Line ends before the next byte.
    private var lines = 0
    /// The line in which the record that was read last begins, from 1.
    private(set) var line = 0

    /// - Parameter source: UTF-8, with or without a byte order mark.
    init(_ source: any ByteSource, name: String) throws(CommandFailure) {
        self.source = source
        self.name = name
        while buffer.count < 3, try fill() {}
        if buffer.starts(with: [0xEF, 0xBB, 0xBF]) { used = 3 }
    }

    private func fill() throws(CommandFailure) -> Bool {
        if isAtEnd { return false }
        buffer.removeFirst(used)
        used = 0
        isAtEnd = try !source.read(into: &buffer, atMost: Self.readBytes)
        return !isAtEnd
    }

    private func peek() throws(CommandFailure) -> UInt8? {
        if used == buffer.count, try !fill() { return nil }
        return buffer[used]
    }

    /// The next record; nil at the end. Empty lines are skipped.
    func next() throws(CommandFailure) -> [Cell]? {
        while let byte = try peek(), byte == 0x0A || byte == 0x0D { skipLineEnd(byte) }
        guard try peek() != nil else { return nil }
        line = lines + 1
        var cells: [Cell] = []
        var bytes = 0
        while true {
            let (cell, count) = try cell(bytes)
            bytes += count
            cells.append(cell)
            guard let byte = try peek() else { return cells }
            used += 1
            if byte == UInt8(ascii: ",") { continue }
            used -= 1
            skipLineEnd(byte)
            return cells
        }
    }

    private func skipLineEnd(_ byte: UInt8) {
        used += 1
        if byte == 0x0A { lines += 1 }
    }

    /// Reads up to the comma or the line end after a cell, which is left.
    private func cell(_ before: Int) throws(CommandFailure) -> (Cell, bytes: Int) {
        if try peek() == UInt8(ascii: "\"") { return try quotedCell(before) }
        var bytes: [UInt8] = []
        while let byte = try peek(), byte != UInt8(ascii: ","), byte != 0x0A, byte != 0x0D {
            try take(byte, &bytes, before)
        }
        return (Cell(text: try text(bytes)), bytes.count)
    }

    private func quotedCell(_ before: Int) throws(CommandFailure) -> (Cell, bytes: Int) {
        used += 1
        var bytes: [UInt8] = []
        while true {
            guard let byte = try peek() else { throw failure("the quotes have no end") }
            guard byte == UInt8(ascii: "\"") else {
                if byte == 0x0A { lines += 1 }
                try take(byte, &bytes, before)
                continue
            }
            used += 1
            guard let after = try peek(), after == UInt8(ascii: "\"") else { break }
            try take(after, &bytes, before)
        }
        if let after = try peek(), after != UInt8(ascii: ","), after != 0x0A, after != 0x0D {
            throw failure("there is text after a cell in quotes")
        }
        return (Cell(text: try text(bytes), isQuoted: true), bytes.count)
    }

    private func take(_ byte: UInt8, _ bytes: inout [UInt8], _ before: Int) throws(CommandFailure) {
        used += 1
        bytes.append(byte)
        if before + bytes.count > Self.recordBytesMax {
            throw failure("the record is longer than \(Self.recordBytesMax >> 20) MiB")
        }
    }

    private func text(_ bytes: [UInt8]) throws(CommandFailure) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw failure("the text is not UTF-8") }
        return text
    }

    /// An error of the record that was read last.
    func failure(_ reason: String) -> CommandFailure { CommandFailure("\(name):\(line): \(reason)") }
}
