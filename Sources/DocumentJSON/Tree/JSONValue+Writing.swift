internal import Basics

extension JSONValue {
    /// The value as JSON on one line; names in the order of their bytes.
    package var json: String { written(indent: nil) }

    /// The value as JSON with a member or an element a line, for people.
    package var jsonLines: String { written(indent: 0) + "\n" }

    /// - Parameter indent: columns before the line; nil for one line.
    private func written(indent: Int?) -> String {
        switch self {
        case .null: return "null"
        case .boolean(let value): return value ? "true" : "false"
        case .integer(let number): return String(number)
        case .double(let number): return number.isFinite ? number.description : "null"
        case .string(let text): return JSONText.quoted(text)
        case .array(let elements):
            return Self.joined(elements.map { $0.written(indent: indent.map { $0 + 2 }) }, "[", "]", indent)
        case .object(let members):
            let lines = members.sorted { $0.key.compareUTF8($1.key) < 0 }.map { name, value in
                JSONText.quoted(name) + (indent == nil ? ":" : ": ") + value.written(indent: indent.map { $0 + 2 })
            }
            return Self.joined(lines, "{", "}", indent)
        }
    }

    private static func joined(_ parts: [String], _ open: String, _ close: String, _ indent: Int?) -> String {
        guard let indent, !parts.isEmpty else { return open + parts.joined(separator: ",") + close }
        let lead = "\n" + String(repeating: " ", count: indent + 2)
        return open + lead + parts.joined(separator: "," + lead) + "\n" + String(repeating: " ", count: indent) + close
    }
}
