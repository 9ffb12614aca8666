// Appending writes that were not read from the wire, and the checks that every write passes.

package import Basics

extension WriteList {
    /// Appends a set, or with a mask a change of some fields.
    ///
    /// - Parameters:
    ///   - name: the document's full resource name.
    ///   - fields: the document's field entries, canonical or not.
    ///   - mask: the paths to change; nil replaces the document.
    package mutating func update(
        _ name: RawSpan, fields: RawSpan, mask: DocumentMask? = nil, precondition: Precondition? = nil,
        transforms: [FieldTransform] = []
    ) throws(RequestError) {
        try append(.update, name: name, fields: fields, mask: mask, precondition: precondition, transforms: transforms)
    }

    package mutating func delete(_ name: RawSpan, precondition: Precondition? = nil) throws(RequestError) {
        try append(
            .delete, name: name, fields: name.extracting(first: 0), mask: nil, precondition: precondition,
            transforms: [])
    }

    package mutating func verify(_ name: RawSpan, precondition: Precondition) throws(RequestError) {
        try append(
            .verify, name: name, fields: name.extracting(first: 0), mask: nil, precondition: precondition,
            transforms: [])
    }

    /// Appends one checked write; leaves the list as it was when a check fails.
    mutating func append(
        _ kind: Write.Kind, name: RawSpan, fields: RawSpan, mask: DocumentMask?, precondition: Precondition?,
        transforms: [FieldTransform]
    ) throws(RequestError) {
        try checkName(name)
        try WriteList.checkParts(kind, name: name, mask: mask, precondition: precondition, transforms: transforms)
        let nameStart = bytes.count
        bytes.append(copying: name)
        let fieldsStart = bytes.count
        if kind == .update {
            do throws(RequestError) {
                try appendCanonical(fields, name: name)
            } catch {
                bytes.removeSubrange(nameStart...)
                throw error
            }
        }
        writes.append(
            Write(
                kind: kind, name: nameStart..<fieldsStart, fields: fieldsStart..<bytes.count, mask: mask,
                precondition: precondition, transforms: transforms))
    }

    /// The name must be a document's, in the list's database.
    private func checkName(_ name: RawSpan) throws(RequestError) {
        let view = try ResourceNameView(resource: name, rules: rules)
        if !view.isDocument { throw RequestError(.notADocument, name: name) }
        if !view.databaseBytes.equalsBytes(database.utf8.byteSpan) {
            throw .invalidArgument(
                "Document \"\(String(repairingUTF8: name))\" is not in the request's database \(database).")
        }
    }

    private static func checkParts(
        _ kind: Write.Kind, name: RawSpan, mask: DocumentMask?, precondition: Precondition?,
        transforms: [FieldTransform]
    ) throws(RequestError) {
        if kind != .update, mask != nil {
            throw .invalidArgument("a \(kind) must not specify a document mask.")
        }
        if kind == .verify, precondition == nil { throw .invalidArgument("a verify must contain a precondition") }
        if let mask, mask.paths.contains(where: \.isDocumentName) {
            throw .invalidArgument("An update mask cannot contain __name__.")
        }
        if transforms.isEmpty {
            if kind == .transform { throw .invalidArgument("The list of FieldTransform must not be empty.") }
            return
        }
        if kind == .delete || kind == .verify {
            throw .invalidArgument("a \(kind) must not specify a update transform.")
        }
        if transforms.count > Limits.transformsPerDocument {
            throw WriteList.tooManyTransforms(name)
        }
        for transform in transforms {
            if transform.path.isDocumentName { throw .invalidArgument("A field transform cannot change __name__.") }
            // Each name but the last is a map around the value.
            if transform.path.count > Limits.nestingDepth + 1 {
                throw RequestError(InvalidDocument(.nestedTooDeeply, offset: 0, fieldPath: transform.path.description))
            }
        }
        if let path = firstPathWithNested(transforms) {
            throw .invalidArgument("Cannot transform property \(path) and its nested property at the same time.")
        }
    }

    /// A path of which another transform of the same write changes a part; nil if there is none.
    private static func firstPathWithNested(_ transforms: [FieldTransform]) -> FieldPath? {
        if transforms.count < 2 { return nil }
        // Sorted, a path stands before everything inside it, with nothing between but more of the same.
        let paths = transforms.map(\.path).sorted()
        return zip(paths, paths.dropFirst()).first { $0 != $1 && $0.isPrefix(of: $1) }?.0
    }

    static func tooManyTransforms(_ name: RawSpan) -> RequestError {
        RequestError(
            .invalidArgument,
            "A commit may apply at most \(Limits.transformsPerDocument) field transforms to one document.",
            documentName: String(repairingUTF8: name))
    }

    /// Validates a document's fields and appends their canonical form.
    private mutating func appendCanonical(_ fields: RawSpan, name: RawSpan) throws(RequestError) {
        do throws(InvalidDocument) {
            var validity = try DocumentValidator.validate(fields: fields, rules: rules)
            if validity.isCanonical {
                bytes.append(copying: fields)
            } else {
                var canonical = ByteBuffer(capacity: fields.byteCount)
                try DocumentCanonicalizer.canonicalize(fields: fields, into: &canonical)
                // Overridden duplicates are gone now and count no more.
                validity = try DocumentValidator.validate(fields: canonical.bytes, rules: rules)
                bytes.append(copying: canonical.bytes)
            }
            try WriteList.checkDocumentSize(name: name, fieldsSize: validity.size)
        } catch {
            throw RequestError(error, documentName: String(repairingUTF8: name))
        }
    }

    /// Throws if a document with this name and size of fields is too large to be stored.
    ///
    /// - Parameter name: a full document name that has been checked.
    package static func checkDocumentSize(name: RawSpan, fieldsSize: Int) throws(InvalidDocument) {
        // The name counts less than twice its bytes and a constant; most documents are far from the limit.
        if fieldsSize + 2 * name.byteCount + 256 <= Limits.documentBytes { return }
        guard let view = try? ResourceNameView(name) else { return }
        let size = DocumentSize.document(nameSize: DocumentSize.name(view), fieldsSize: fieldsSize)
        if size > Limits.documentBytes { throw InvalidDocument(.documentTooLarge, offset: 0) }
    }
}

extension [UInt8] {
    /// Appends a copy of the span's bytes.
    package mutating func append(copying span: RawSpan) {
        unsafe span.withUnsafeBytes { unsafe append(contentsOf: $0) }
    }
}
