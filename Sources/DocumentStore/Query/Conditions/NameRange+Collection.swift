// What a range of names means within one collection: a range of document ids.

import DocumentModel

/// Relative paths as bytes.
enum RelativePath {
    static let slash = UInt8(ascii: "/")

    /// Whether `path` lies strictly below `ancestor`, segment-wise; everything lies below the empty path.
    static func isBelow(_ path: RawSpan, _ ancestor: RawSpan) -> Bool {
        if ancestor.isEmpty { return !path.isEmpty }
        return path.byteCount > ancestor.byteCount + 1 && path.startsWith(ancestor)
            && path[byteAt: ancestor.byteCount] == slash
    }

    /// The segment of `path` that follows `ancestor`, which the path lies below, and whether it is the path's last.
    static func nextSegment(of path: RawSpan, below ancestor: RawSpan) -> (id: [UInt8], isLast: Bool) {
        let start = ancestor.isEmpty ? 0 : ancestor.byteCount + 1
        let end = path.firstOffset(of: slash, from: start) ?? path.byteCount
        return ([UInt8](copying: path.extracting(start..<end)), end == path.byteCount)
    }

    /// The path of the collection or document with an id directly below a parent, which may be empty.
    static func child(_ id: [UInt8], of parent: [UInt8]) -> [UInt8] {
        parent.isEmpty ? id : parent + [slash] + id
    }

    /// The last segment.
    @_lifetime(copy path)
    static func lastSegment(_ path: RawSpan) -> RawSpan {
        var start = 0
        while let slash = path.firstOffset(of: slash, from: start) { start = slash + 1 }
        return path.extracting(start..<path.byteCount)
    }

    /// The path's prefixes that are collections, outermost first, itself included if it is one.
    static func collections(leadingTo path: [UInt8]) -> [[UInt8]] {
        var result: [[UInt8]] = []
        var segments = 0
        for index in path.indices where path[index] == slash {
            segments += 1
            if segments % 2 == 1 { result.append(Array(path[..<index])) }
        }
        if !path.isEmpty, segments % 2 == 0 { result.append(path) }
        return result
    }
}

extension NameRange {
    /// The ids of the collection's documents that lie in the range; nil if none can.
    func ids(in collection: [UInt8]) -> DocumentIDRange? {
        var range = DocumentIDRange()
        if let lower {
            switch lower.place(in: collection) {
            case .before: break
            case .after: return nil
            case .at(let id): range.lower = DocumentIDBound(id: id, isInclusive: lower.isInclusive)
            // The document itself precedes everything below it.
            case .below(let id): range.lower = DocumentIDBound(id: id, isInclusive: false)
            }
        }
        if let upper {
            switch upper.place(in: collection) {
            case .before: return nil
            case .after: break
            case .at(let id): range.upper = DocumentIDBound(id: id, isInclusive: upper.isInclusive)
            case .below(let id): range.upper = DocumentIDBound(id: id, isInclusive: true)
            }
        }
        return range
    }
}

extension NameRange.Bound {
    /// Where a bound lies, seen from the documents of one collection.
    enum Place: Equatable {
        /// Before all of them.
        case before
        /// At the document with this id.
        case at([UInt8])
        /// After the document with this id and before the next, among what lies below it.
        case below([UInt8])
        /// After all of them.
        case after
    }

    func place(in collection: [UInt8]) -> Place {
        switch position {
        case .beforeAll: return .before
        case .afterAll: return .after
        case .at(let path):
            if RelativePath.isBelow(path.byteSpan, collection.byteSpan) {
                let (id, isLast) = RelativePath.nextSegment(of: path.byteSpan, below: collection.byteSpan)
                return isLast ? .at(id) : .below(id)
            }
            return ResourcePath.compare(path.byteSpan, collection.byteSpan) <= 0 ? .before : .after
        }
    }
}
