import Basics
import DocumentModel

/// The text of a reference: a full document name, or a path relative to the database of the line.
enum ReferenceText {
    private static let labels = ["projects/", "databases/", "documents/"].map { Array($0.utf8) }

    /// Whether `text` begins with `projects/P/databases/D/documents/`. A relative path of that shape is written in
    /// full.
    static func isFullName(_ text: RawSpan) -> Bool {
        var start = 0
        for (index, label) in labels.enumerated() {
            guard unsafe text.extracting(start..<text.byteCount).startsWith(label.span.bytes) else { return false }
            start += label.count
            if index == labels.count - 1 { break }
            guard let slash = text.firstOffset(of: UInt8(ascii: "/"), from: start) else { return false }
            start = slash + 1
        }
        return true
    }
}
