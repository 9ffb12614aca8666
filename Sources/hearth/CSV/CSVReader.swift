// Records of CSV (RFC 4180): cells between commas, records between line ends, quotes around cells that have either.

import Basics

/// Why a record cannot be read or stored.
struct CSVProblem: Error, CustomStringConvertible {
    /// With file and line.
    let description: String
    let reason: String
    /// Whether the records after it can be read.
    let isLocal: Bool
}

/// Reads records one after the other. Memory is bounded by the longest record.
final class CSVReader {
    /// Bytes of a record.
    private let recordBytesMax: Int
    private static let cellsMax = 1_000_000
    private static let readBytes = 256 << 10
    private static let none = ByteSet([])
    private static let quotes = ByteSet("\"".utf8)
    private static let lineEnds = ByteSet("\r\n".utf8)
    private static let cellEnds = ByteSet(",\r\n".utf8)
    /// What may change whether bytes are in quotes, outside of them.
    private static let marks = ByteSet("\",\r\n".utf8)

    private let source: any InputBytes
    /// What the input is called in messages.
    let name: String
    private var buffer: [UInt8] = []
    private var used = 0
    private var isAtEnd = false
    /// Line ends before the next byte.
    private var lines = 0
    /// The line in which the record that was read last begins, from 1.
    private(set) var line = 0
    private let keepsText: Bool
    /// The bytes of the record that was read last, as they are in the file, without its line end; empty unless they are
    /// kept.
    private(set) var text: [UInt8] = []
    /// The record that was read last.
    private(set) var record = CSVRecord()
    /// Whether a cell of the record is not UTF-8.
    private var isInvalid = false

    /// - Parameters:
    ///   - source: UTF-8, with or without a byte order mark.
    ///   - keepsText: whether the bytes of records are kept.
    ///   - recordBytesMax: bytes that the cells of a record may have.
    init(
        _ source: any InputBytes, name: String, keepsText: Bool = false, recordBytesMax: Int = 16 << 20
    ) throws(CSVProblem) {
        self.source = source
        self.name = name
        self.keepsText = keepsText
        self.recordBytesMax = recordBytesMax
        while buffer.count < 3, try fill() {}
        if buffer.starts(with: [0xEF, 0xBB, 0xBF]) { used = 3 }
    }

    private func fill() throws(CSVProblem) -> Bool {
        if isAtEnd { return false }
        buffer.removeFirst(used)
        used = 0
        do throws(CommandFailure) {
            isAtEnd = try !source.read(into: &buffer, atMost: Self.readBytes)
        } catch {
            throw CSVProblem(description: error.description, reason: error.description, isLocal: false)
        }
        return !isAtEnd
    }

    private func peek() throws(CSVProblem) -> UInt8? {
        if used == buffer.count, try !fill() { return nil }
        return buffer[used]
    }

    /// Goes past a comma or a quote of a record.
    private func pass(_ byte: UInt8) {
        used += 1
        if keepsText { text.append(byte) }
    }

    /// Goes past the bytes up to one of a set, or to the end of the buffer.
    /// - Returns: the bytes that were passed; at least one unless the next byte is of the set.
    private func skip(to ends: ByteSet, atMost count: Int = .max) -> Range<Int> {
        let start = used
        let end = start + min(count, buffer.count - start)
        used = buffer.byteSpan.extracting(0..<end).firstOffset(in: ends, from: start) ?? end
        if !ends.contains(0x0A) { lines += buffer.byteSpan.extracting(start..<used).count(of: 0x0A) }
        return start..<used
    }

    /// Reads the next record. Empty lines are skipped. After a problem that is local the next call has the record after
    /// it.
    /// - Returns: false at the end.
    func next() throws(CSVProblem) -> Bool {
        while let byte = try peek(), Self.endsLine(byte) { skipLineEnd(byte) }
        guard try peek() != nil else { return false }
        line = lines + 1
        record.removeAll()
        text.removeAll(keepingCapacity: true)
        isInvalid = false
        while true {
            try readCell()
            guard let byte = try peek(), byte == UInt8(ascii: ",") else { break }
            if record.count == Self.cellsMax { try refuseRest("has more than 1,000,000 cells", isQuoted: false) }
            pass(byte)
        }
        if let byte = try peek() { skipLineEnd(byte) }
        if isInvalid { throw problem("the text is not UTF-8") }
        return true
    }

    private static func endsLine(_ byte: UInt8) -> Bool { byte == 0x0A || byte == 0x0D }

    private func skipLineEnd(_ byte: UInt8) {
        used += 1
        if byte == 0x0A { lines += 1 }
    }

    /// Reads up to the comma or the line end after a cell, which is left.
    private func readCell() throws(CSVProblem) {
        if try peek() == UInt8(ascii: "\"") { return try readQuotedCell() }
        while let byte = try peek(), !Self.cellEnds.contains(byte) {
            try take(to: Self.cellEnds, isQuoted: false)
        }
        endCell(isQuoted: false)
    }

    private func endCell(isQuoted: Bool) {
        if !record.endCell(isQuoted: isQuoted) { isInvalid = true }
    }

    private func readQuotedCell() throws(CSVProblem) {
        let quote = UInt8(ascii: "\"")
        pass(quote)
        while true {
            guard let byte = try peek() else { throw problem("the quotes have no end", isLocal: false) }
            guard byte == quote else {
                try take(to: Self.quotes, isQuoted: true)
                continue
            }
            pass(byte)
            guard try peek() == quote else { break }
            try take(to: Self.none, isQuoted: true, atMost: 1)
        }
        if let after = try peek(), !Self.cellEnds.contains(after) {
            while let byte = try peek(), !Self.endsLine(byte) {
                try take(to: Self.lineEnds, isQuoted: false)
            }
            throw problem("there is text after a cell in quotes")
        }
        endCell(isQuoted: true)
    }

    /// Takes the bytes of the buffer up to one of a set, and no more than a record may have and one.
    private func take(to ends: ByteSet, isQuoted: Bool, atMost count: Int = .max) throws(CSVProblem) {
        let part = skip(to: ends, atMost: min(count, recordBytesMax + 1 - record.byteCount))
        record.append(buffer.byteSpan.extracting(part))
        if keepsText { text.append(contentsOf: buffer.byteSpan.extracting(part)) }
        if record.byteCount > recordBytesMax {
            try refuseRest("is longer than \(recordBytesMax >> 20) MiB", isQuoted: isQuoted)
        }
    }

    /// Goes to the line end after a record, whatever its length, and throws. Its bytes are not kept.
    private func refuseRest(_ reason: String, isQuoted: Bool) throws(CSVProblem) -> Never {
        text.removeAll()
        let quote = UInt8(ascii: "\"")
        var isQuoted = isQuoted
        /// Quotes open a cell after a comma, and again after quotes that closed it.
        var mayOpen = false
        while let byte = try peek(), isQuoted || !Self.endsLine(byte) {
            if !skip(to: isQuoted ? Self.quotes : Self.marks).isEmpty {
                mayOpen = false
            } else if isQuoted {
                used += 1
                (isQuoted, mayOpen) = (false, true)
            } else {
                used += 1
                isQuoted = mayOpen && byte == quote
                mayOpen = byte == UInt8(ascii: ",")
            }
        }
        if isQuoted { throw problem("the quotes have no end", isLocal: false) }
        throw problem("the record \(reason)")
    }

    /// A text as a cell in quotes.
    static func quoted(_ text: String) -> String {
        var cell: [UInt8] = []
        text.withUTF8Span { appendQuoted($0, to: &cell) }
        return String(decoding: cell, as: UTF8.self)
    }

    /// Appends a text as a cell in quotes. Bytes count: a quote and a combining mark after it are one character.
    static func appendQuoted(_ text: RawSpan, to bytes: inout [UInt8]) {
        let quote = UInt8(ascii: "\"")
        bytes.append(quote)
        var start = 0
        while let place = text.firstOffset(of: quote, from: start) {
            bytes.append(contentsOf: text.extracting(start..<place + 1))
            bytes.append(quote)
            start = place + 1
        }
        bytes.append(contentsOf: text.extracting(start..<text.byteCount))
        bytes.append(quote)
    }

    /// A problem of the record that was read last.
    func problem(_ reason: String, isLocal: Bool = true) -> CSVProblem {
        CSVProblem(description: "\(name):\(line): \(reason)", reason: reason, isLocal: isLocal)
    }
}
