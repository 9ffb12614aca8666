import DocumentModel

/// A part of a target that is judged by itself: its query, or one of its documents.
struct TargetPart: Hashable {
    let target: Target
    /// The position of the document in the target; 0 for a query.
    let index: Int

    static func == (one: TargetPart, other: TargetPart) -> Bool {
        one.target === other.target && one.index == other.index
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(target))
        hasher.combine(index)
    }
}

/// What a target is judged by, and what its verdict rests on. Confined to the thread of its hub.
final class TargetJudgement {
    /// What is judged.
    enum Subject {
        /// Paths below `documents`.
        case documents([[UInt8]])
        /// A query, and the full resource name that it is below.
        case query(StructuredQuery, parent: [UInt8])
    }

    /// The judgement of one part.
    struct Part {
        /// Paths of the documents that the verdict rests on.
        fileprivate(set) var basis: Set<[UInt8]> = []
        /// Whether it was allowed at the version of the target's first snapshot.
        var isJudged = false
        /// Whether it waits to be judged.
        var isDue = false
    }

    let subject: Subject
    var parts: [Part]
    /// Memory that it holds, in bytes; an estimate.
    private(set) var byteCount: Int

    /// The judgement of a documents target.
    init(documents paths: [[UInt8]]) {
        subject = .documents(paths)
        parts = Array(repeating: Part(), count: paths.count)
        byteCount = 128 + paths.count * MemoryLayout<Part>.stride
    }

    /// The judgement of a query target.
    ///
    /// - Parameter identityBytes: the size of the encoded query with its parent.
    init(_ query: StructuredQuery, parent: String, identityBytes: Int) {
        subject = .query(query, parent: Array(parent.utf8))
        parts = [Part()]
        byteCount = 1_024 + 4 * identityBytes
    }

    /// Takes the documents that the verdict of a part rests on now.
    func setBasis(_ basis: Set<[UInt8]>, ofPart index: Int) {
        byteCount += Self.byteCount(of: basis) - Self.byteCount(of: parts[index].basis)
        parts[index].basis = basis
    }

    /// Memory for the documents that a verdict rests on, in bytes, with that of ``VerdictDocuments``.
    static func byteCount(of basis: Set<[UInt8]>) -> Int { basis.reduce(0) { $0 + $1.count + 256 } }
}

/// The documents that verdicts rest on, for one database. Confined to the thread of its hub.
struct VerdictDocuments {
    private var parts: [[UInt8]: Set<TargetPart>] = [:]

    var isEmpty: Bool { parts.isEmpty }
    var count: Int { parts.count }

    /// Takes a part whose verdict rested on some documents and rests on others now.
    mutating func move(_ part: TargetPart, from old: Set<[UInt8]>, to new: Set<[UInt8]>) {
        for path in old where !new.contains(path) {
            parts[path]?.remove(part)
            if parts[path]?.isEmpty ?? false { parts[path] = nil }
        }
        for path in new where !old.contains(path) { parts[path, default: []].insert(part) }
    }

    /// Calls `body` with each part whose verdict rests on a document.
    func forEachPart(restingOn path: RawSpan, _ body: (TargetPart) -> Void) {
        if parts.isEmpty { return }
        for part in parts[[UInt8](copying: path)] ?? [] { body(part) }
    }
}
