internal import Basics

/// Collections of which a caller may read every document by its name, as rules about the caller alone have said
/// (``SecurityRules/Verdict/allowsSiblings``). A few: the ones noted last.
struct OpenCollections {
    /// Their paths below `documents`.
    private var paths: [[UInt8]] = []
    private var next = 0

    private static let countMax = 8

    /// Whether a document lies in one of them.
    ///
    /// - Parameter document: its path below `documents`.
    func contains(collectionOf document: RawSpan) -> Bool {
        guard !paths.isEmpty, let count = Self.collectionBytes(of: document) else { return false }
        let collection = document.extracting(first: count)
        return paths.contains { $0.byteSpan.equalsBytes(collection) }
    }

    /// Takes note of the collection of a document.
    mutating func note(collectionOf document: RawSpan) {
        guard let count = Self.collectionBytes(of: document) else { return }
        let collection = [UInt8](copying: document.extracting(first: count))
        if paths.count < Self.countMax { return paths.append(collection) }
        paths[next] = collection
        next = (next + 1) % Self.countMax
    }

    /// Bytes before the last slash.
    private static func collectionBytes(of document: RawSpan) -> Int? {
        var index = document.byteCount - 1
        while index >= 0, document[byteAt: index] != UInt8(ascii: "/") { index -= 1 }
        return index < 0 ? nil : index
    }
}
