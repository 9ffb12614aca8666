// Groups, protobuf's older form of nested messages, which `WireReader` refuses.

internal import DocumentModel

extension WireReader {
    /// Groups that may be nested in each other.
    private static var depthMax: Int { 16 }

    /// Reads a group whose start tag was read.
    ///
    /// - Returns: its contents, without the end tag.
    @_lifetime(copy self)
    mutating func group(_ tag: WireTag) throws(InvalidDocument) -> RawSpan {
        let start = position
        var open = [tag.fieldNumber]
        while let inner = open.last {
            let tagStart = position
            guard let next = try nextTag() else { throw InvalidDocument(.truncated, offset: start) }
            switch next.wireType {
            case .startGroup:
                if open.count == Self.depthMax { throw InvalidDocument(.messageTooDeep, offset: tagStart) }
                open.append(next.fieldNumber)
            case .endGroup:
                if next.fieldNumber != inner { throw InvalidDocument(.invalidTag, offset: tagStart) }
                open.removeLast()
                if open.isEmpty { return bytes.extracting(start..<tagStart) }
            default: try skip(next)
            }
        }
        throw InvalidDocument(.truncated, offset: start)
    }

    /// Moves past a field of any wire type.
    @_lifetime(self: copy self)
    mutating func skipField(_ tag: WireTag) throws(InvalidDocument) {
        if tag.wireType == .startGroup { _ = try group(tag) } else { try skip(tag) }
    }
}
