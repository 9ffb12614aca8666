internal import Basics

/// Relative paths as bytes.
package enum RelativePath {
    package static let slash = UInt8(ascii: "/")

    /// Whether `path` lies strictly below `ancestor`, segment-wise; everything lies below the empty path.
    package static func isBelow(_ path: RawSpan, _ ancestor: RawSpan) -> Bool {
        if ancestor.isEmpty { return !path.isEmpty }
        return path.byteCount > ancestor.byteCount + 1 && path.startsWith(ancestor)
            && path[byteAt: ancestor.byteCount] == slash
    }

    /// The segment of `path` that follows `ancestor`, which the path lies below, and whether it is the path's last.
    package static func nextSegment(of path: RawSpan, below ancestor: RawSpan) -> (id: [UInt8], isLast: Bool) {
        let start = ancestor.isEmpty ? 0 : ancestor.byteCount + 1
        let end = path.firstOffset(of: slash, from: start) ?? path.byteCount
        return ([UInt8](copying: path.extracting(start..<end)), end == path.byteCount)
    }

    /// The path of the collection or document with an id directly below a parent, which may be empty.
    package static func child(_ id: [UInt8], of parent: [UInt8]) -> [UInt8] {
        parent.isEmpty ? id : parent + [slash] + id
    }

    /// The last segment.
    @_lifetime(copy path)
    package static func lastSegment(_ path: RawSpan) -> RawSpan {
        var start = 0
        while let slash = path.firstOffset(of: slash, from: start) { start = slash + 1 }
        return path.extracting(start..<path.byteCount)
    }

    /// The path without its last segment; empty if it has one segment.
    @_lifetime(copy path)
    package static func dropLast(_ path: RawSpan) -> RawSpan {
        path.extracting(0..<max(0, path.byteCount - lastSegment(path).byteCount - 1))
    }

    /// The path's prefixes that are collections, outermost first, itself included if it is one.
    package static func collections(leadingTo path: [UInt8]) -> [[UInt8]] {
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
