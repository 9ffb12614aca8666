// The objects of one member that spell values JSON lacks: {"$timestamp": "..."} and its like.

/// What the single member of an object says its value is.
enum ExtendedForm: String, CaseIterable {
    case double = "$double"
    case bytes = "$bytes"
    case timestamp = "$timestamp"
    case reference = "$reference"
    case geoPoint = "$geoPoint"
    case vector = "$vector"
    /// A plain map that happens to look like one of these.
    case map = "$map"

    /// The form of the object at the position of `scanner`; nil if the object is a plain map.
    ///
    /// Throws for an object with one member whose name begins with `$` and is none of these.
    init?(at scanner: borrowing JSONScanner) throws(JSONLineError) {
        var ahead = JSONScanner(scanner.line)
        ahead.seek(to: scanner.position)
        guard ahead.skip(0x7B), ahead.peek() == 0x22 else { return nil }
        let column = ahead.position
        guard column + 1 < ahead.line.count, ahead.line[column + 1] == 0x24 else { return nil }
        let key = try ahead.string()
        try ahead.expect(0x3A)
        try ahead.skipValue()
        guard ahead.peek() == 0x7D else { return nil }
        let name = unsafe ahead.line.extracting(key.start..<key.end).withUnsafeBufferPointer {
            unsafe String(decoding: $0, as: UTF8.self)
        }
        guard let form = ExtendedForm(rawValue: name) else {
            let known = Self.allCases.map(\.rawValue).joined(separator: ", ")
            throw JSONLineError("unknown form \(name.prefix(40)); the forms are \(known)", at: column)
        }
        self = form
    }
}
