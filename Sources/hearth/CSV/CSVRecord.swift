import Basics

/// One cell of CSV, lent.
struct CSVCell: ~Escapable {
    /// Valid UTF-8, without the quotes around it. An empty text in quotes is a value, and one without quotes is none.
    let text: RawSpan
    let isQuoted: Bool

    @_lifetime(copy text)
    init(_ text: RawSpan, isQuoted: Bool = false) {
        self.text = text
        self.isQuoted = isQuoted
    }

    /// The beginning of the text, in quotation marks, for errors.
    var beginning: String { CSVCell.beginning(of: String(repairingUTF8: text)) }

    static func beginning(of text: String) -> String { JSONText.quoted(String(text.prefix(40))) }
}

/// The cells of one record of CSV.
struct CSVRecord {
    /// The texts of the cells, one after the other.
    private var bytes: [UInt8] = []
    private var cells: [(end: Int, isQuoted: Bool)] = []

    var count: Int { cells.count }

    /// Bytes of all cells.
    var byteCount: Int { bytes.count }

    subscript(index: Int) -> CSVCell {
        @_lifetime(borrow self)
        borrowing get {
            let start = index == 0 ? 0 : cells[index - 1].end
            let (end, isQuoted) = cells[index]
            return CSVCell(bytes.byteSpan.extracting(start..<end), isQuoted: isQuoted)
        }
    }

    /// The texts of the cells.
    var texts: [String] { (0..<count).map { String(repairingUTF8: self[$0].text) } }

    /// Keeps the memory.
    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        cells.removeAll(keepingCapacity: true)
    }

    /// Appends bytes to the text of the next cell.
    mutating func append(_ text: RawSpan) { bytes.append(contentsOf: text) }

    /// Ends the text of a cell.
    /// - Returns: whether it is UTF-8.
    mutating func endCell(isQuoted: Bool) -> Bool {
        cells.append((bytes.count, isQuoted))
        return UTF8Validation.isValid(self[count - 1].text)
    }
}
