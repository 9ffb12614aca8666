// Paths of documents and collections below others.

/// Relative paths as byte arrays.
package enum ChildPath {
    /// A path one segment longer.
    package static func join(_ parent: [UInt8], _ id: [UInt8]) -> [UInt8] {
        parent.isEmpty ? id : parent + [UInt8(ascii: "/")] + id
    }

    /// The segment of `path` that follows `parent`, which it begins with.
    package static func firstSegment(of path: [UInt8], below parent: [UInt8]) -> ArraySlice<UInt8> {
        let rest = path[(parent.isEmpty ? 0 : parent.count + 1)...]
        return rest[..<(rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex)]
    }
}
