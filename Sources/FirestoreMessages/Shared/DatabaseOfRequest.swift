// The database that a request is about, found without reading all of the request.

internal import DocumentModel

extension Method {
    /// Where a request says what it is about: the bytes of the name of a database, or of something in one. The name may
    /// be malformed. Nil if the request has none.
    ///
    /// Walks over the fields of the message, and into none but the one with the name. As everywhere, the last field of
    /// a number counts.
    package func nameRange(in request: RawSpan) -> Range<Int>? {
        switch self {
        case .updateDocument, .updateField, .updateDatabase:
            // The document, field or database, whose first field is its name.
            guard let resource = request.lastField(1) else { return nil }
            return request.lastField(1, in: resource)
        case .listOperations: return request.lastField(FieldNumber.Longrunning.ListOperationsRequest.name)
        case .listen:
            if let database = request.lastField(1) { return database }
            return request.nameOfTarget
        default: return request.lastField(1)
        }
    }
}

extension RawSpan {
    /// The payload of the last field with a number that is a string, bytes or a message; nil without one, or if the
    /// message is malformed before its end. An empty one counts as missing.
    fileprivate func lastField(_ number: Int, in range: Range<Int>? = nil) -> Range<Int>? {
        let range = range ?? 0..<byteCount
        var reader = WireReader(extracting(range))
        var found: Range<Int>?
        do throws(InvalidDocument) {
            while let tag = try reader.nextTag() {
                guard tag.fieldNumber == number, tag.wireType == .lengthDelimited else {
                    try reader.skip(tag)
                    continue
                }
                let end = try reader.endOfLengthDelimited()
                found = range.lowerBound + reader.position..<range.lowerBound + end
                reader.position = end
            }
        } catch {
            return nil
        }
        guard let found, !found.isEmpty else { return nil }
        return found
    }

    /// The parent of the query, or the last document, of the target that a listen request adds.
    fileprivate var nameOfTarget: Range<Int>? {
        typealias Target = FieldNumber.Target
        guard let target = lastField(FieldNumber.ListenRequest.addTarget) else { return nil }
        if let query = lastField(Target.query, in: target) { return lastField(1, in: query) }
        guard let documents = lastField(Target.documents, in: target) else { return nil }
        return lastField(Target.DocumentsTarget.documents, in: documents)
    }
}
