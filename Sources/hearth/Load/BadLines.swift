// Where `--skip-bad` writes what is not loaded.

import DocumentJSON
import Glibc

/// Takes the lines, records or entities that are not loaded.
protocol BadOutput: AnyObject {
    /// - Parameters:
    ///   - line: its bytes; empty for inputs without lines of text.
    ///   - number: from 1.
    func append(_ line: [UInt8], number: Int, reason: String) throws

    /// Notes a line that the server refused.
    func note(_ line: Int, reason: String) throws
}

/// Appends bad lines to a file, each below a comment that says why; the file can be corrected and loaded.
final class BadLines: BadOutput {
    private let file: OutputFile
    /// Names a line by its number.
    private let place: @Sendable (Int) -> String

    init(path: String, place: @escaping @Sendable (Int) -> String) throws {
        file = try OutputFile(path, flags: O_APPEND)
        self.place = place
    }

    func append(_ line: [UInt8], number: Int, reason: String) throws {
        var text = Array("# \(place(number)): \(reason)\n".utf8)
        text.append(contentsOf: line)
        text.append(0x0A)
        try file.write(text)
    }

    /// The text of the line is not available any more.
    func note(_ line: Int, reason: String) throws {
        try file.write(Array("# \(place(line)): \(reason) (the line is not repeated here)\n".utf8))
    }
}

/// Appends bad records of CSV to a file of CSV: as they are, after a column that says why. The file can be corrected
/// and loaded.
final class BadRecords: BadOutput {
    private let file: OutputFile
    private let input: String
    private let place: @Sendable (Int) -> String
    /// A second reader of the input.
    private var reader: CSVReader
    /// Records that it has read.
    private var count = 0

    /// - Parameters:
    ///   - path: of the file. One that exists gets no second header.
    ///   - input: the path of the file that is loaded.
    ///   - place: names a record by its number.
    init(path: String, of input: String, place: @escaping @Sendable (Int) -> String) throws {
        file = try OutputFile(path, flags: O_APPEND)
        self.input = input
        self.place = place
        reader = try Self.reader(of: input)
        if try file.isEmpty { try write(CSVColumns.errorName) }
    }

    /// A reader that has read the header.
    private static func reader(of input: String) throws -> CSVReader {
        try CSVLines.open(try CSVSurvey.bytes(of: input), name: input, keepsText: true).0
    }

    func append(_ line: [UInt8], number: Int, reason: String) throws {
        if number <= count { (reader, count) = (try Self.reader(of: input), 0) }
        while count < number {
            count += 1
            try skipRecord()
        }
        try write("\(place(number)): \(reason)")
    }

    /// Reads a record, whatever it is.
    private func skipRecord() throws(CommandFailure) {
        let isThere: Bool
        do throws(CSVProblem) {
            isThere = try reader.next()
        } catch {
            guard error.isLocal else { throw CommandFailure(error.description) }
            return
        }
        if !isThere { throw CommandFailure("\(input) is shorter than before") }
    }

    func note(_ line: Int, reason: String) throws { try append([], number: line, reason: reason) }

    /// Writes what was read last after a cell.
    private func write(_ cell: String) throws {
        var text = Array(CSVReader.quoted(cell).utf8)
        text.append(UInt8(ascii: ","))
        text += reader.text
        text.append(0x0A)
        try file.write(text)
    }
}
