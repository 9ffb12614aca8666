import Basics

/// A checked resource name in borrowed bytes: a documents root, a collection or a document. It does not copy or
/// allocate.
///
///     projects/p/databases/(default)/documents/users/jeff/tasks/t1
///     |---------- database ---------|          |------ path -----|
///                                              |- parent -| | |id|
///
/// Names on the wire have this form. ``DocumentPath`` and ``CollectionPath`` own their bytes.
package struct ResourceNameView: ~Escapable {
    /// The whole name, UTF-8.
    package let bytes: RawSpan
    /// Length of `projects/{project}/databases/{database}`.
    package let databaseByteCount: Int
    /// Segments below `documents`: 0 for the root, odd for a collection, even for a document.
    package let segmentCount: Int
    /// Offset of the last segment, or the length of the name when there is none.
    package let lastSegmentOffset: Int

    /// Bytes of `/documents`.
    @usableFromInline static let documentsSuffixBytes = 10

    /// Reads and checks a name; the error says what rule it breaks.
    @_lifetime(copy bytes)
    package init(_ bytes: RawSpan, rules: NameRules = .stored) throws(NameProblem) {
        guard let databaseEnd = DatabaseName.prefixByteCount(of: bytes) else { throw .notAResourceName }
        if bytes.byteCount > Limits.documentNameBytes { throw .nameTooLong }
        if !UTF8Validation.isValid(bytes) { throw .invalidUTF8 }
        let documentsEnd = databaseEnd + ResourceNameView.documentsSuffixBytes
        guard bytes.holds(0x6E65_6D75_636F_642F, at: databaseEnd),  // /documen
            bytes.holds(0x7374_6E65_6D75_636F, at: databaseEnd + 2)  // ocuments
        else { throw .notAResourceName }
        self.bytes = bytes
        databaseByteCount = databaseEnd
        var segments = 0
        var start = bytes.byteCount
        if bytes.byteCount > documentsEnd {
            guard bytes[byteAt: documentsEnd] == UInt8(ascii: "/") else { throw .notAResourceName }
            start = documentsEnd + 1
            while true {
                let end = bytes.firstOffset(of: UInt8(ascii: "/"), from: start) ?? bytes.byteCount
                let id = bytes.extracting(start..<end)
                if let problem = ResourceID.problem(id, isCollection: segments % 2 == 0, rules: rules) { throw problem }
                segments += 1
                if end == bytes.byteCount { break }
                start = end + 1
            }
        }
        if segments > 2 * Limits.collectionDepth { throw .tooDeep }
        segmentCount = segments
        lastSegmentOffset = start
    }

    package var isRoot: Bool { segmentCount == 0 }
    package var isCollection: Bool { segmentCount % 2 == 1 }
    package var isDocument: Bool { segmentCount > 0 && segmentCount % 2 == 0 }

    /// `projects/{project}/databases/{database}`.
    package var databaseBytes: RawSpan {
        @_lifetime(copy self) get { bytes.extracting(0..<databaseByteCount) }
    }

    /// Offset of the path below `documents`; the length of the name for the root.
    package var pathOffset: Int {
        min(databaseByteCount + ResourceNameView.documentsSuffixBytes + 1, bytes.byteCount)
    }

    /// The path below `documents`, without a leading slash; empty for the root.
    package var pathBytes: RawSpan {
        @_lifetime(copy self) get { bytes.extracting(pathOffset..<bytes.byteCount) }
    }

    /// The segments below `documents`, in order.
    package var segments: PathSegments {
        @_lifetime(copy self) get { PathSegments(pathBytes) }
    }
}

/// Iterates the segments of a relative path: the bytes between slashes.
package struct PathSegments: ~Escapable {
    @usableFromInline let path: RawSpan
    @usableFromInline var position: Int

    /// The segments of `path`, which is empty or has no slash at either end.
    @_lifetime(copy path)
    package init(_ path: RawSpan) {
        self.path = path
        position = 0
    }

    /// The next segment, or nil at the end.
    @_lifetime(copy self)
    package mutating func next() -> RawSpan? {
        if position >= path.byteCount { return nil }
        let start = position
        let end = path.firstOffset(of: UInt8(ascii: "/"), from: start) ?? path.byteCount
        position = end + 1
        return path.extracting(start..<end)
    }
}

/// Functions on paths relative to the documents root.
package enum ResourcePath {
    /// Order of two relative paths, segment by segment by ``ResourceID/compare(_:_:)``, prefix first: the order of
    /// `__name__` within a database. Negative, 0 or positive.
    package static func compare(_ left: RawSpan, _ right: RawSpan) -> Int {
        var leftSegments = PathSegments(left)
        var rightSegments = PathSegments(right)
        while true {
            let leftID = leftSegments.next()
            let rightID = rightSegments.next()
            guard let leftID else { return rightID == nil ? 0 : -1 }
            guard let rightID else { return 1 }
            let order = ResourceID.compare(leftID, rightID)
            if order != 0 { return order }
        }
    }

    /// Order of two full names: project, database, then ``compare(_:_:)``. Names that are not well formed are ordered
    /// by their bytes.
    package static func compareNames(_ left: RawSpan, _ right: RawSpan) -> Int {
        guard let leftParts = DatabaseName.parts(of: left), let rightParts = DatabaseName.parts(of: right) else {
            return left.compareBytes(right)
        }
        let project = left.extracting(leftParts.project).compareBytes(right.extracting(rightParts.project))
        if project != 0 { return project }
        let database = left.extracting(leftParts.database).compareBytes(right.extracting(rightParts.database))
        if database != 0 { return database }
        let prefix = ResourceNameView.documentsSuffixBytes + 1
        return compare(
            left.extracting(min(leftParts.database.upperBound + prefix, left.byteCount)..<left.byteCount),
            right.extracting(min(rightParts.database.upperBound + prefix, right.byteCount)..<right.byteCount))
    }
}
