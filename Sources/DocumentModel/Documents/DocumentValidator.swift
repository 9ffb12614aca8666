// Checking document bytes: the gate through which everything that is stored has gone.

/// Validates the wire bytes of documents and values in one walk.
///
/// Document bytes are the concatenated `fields` entries of a `Document` message (field 2), as they stand in it. Valid
/// bytes keep every rule and limit of section 1 and 4 of the semantics page; canonical bytes are moreover the one
/// spelling of their contents, see ``DocumentCanonicalizer``.
package enum DocumentValidator {
    /// What a walk found out about valid bytes.
    package struct Result: Sendable, Equatable {
        /// Whether the bytes are in canonical form; otherwise they need ``DocumentCanonicalizer``.
        package var isCanonical: Bool
        /// Size of the fields, or of the value, by the published formula; see ``DocumentSize``. An upper bound when
        /// the bytes are not canonical, because overridden duplicates count.
        package var size: Int

        package init(isCanonical: Bool, size: Int) {
            self.isCanonical = isCanonical
            self.size = size
        }
    }

    /// Checks document bytes: every rule but the size of the whole document, which depends on its name.
    package static func validate(fields: RawSpan, rules: NameRules = .stored) throws(InvalidDocument) -> Result {
        var walk = DocumentWalk(fields, rules: rules)
        do throws(WalkFailure) {
            try walk.entries(0, fields.byteCount, tag: DocumentTag.field, depth: 0)
        } catch {
            let path = FieldLocator.path(inFields: fields, at: error.offset)
            throw InvalidDocument(error.reason, offset: error.offset, fieldPath: path)
        }
        return Result(isCanonical: walk.isCanonical, size: walk.size)
    }

    /// Checks one `Value` message: an operand of a filter, a cursor or a transform.
    package static func validate(value: RawSpan, rules: NameRules = .stored) throws(InvalidDocument) -> Result {
        var walk = DocumentWalk(value, rules: rules)
        do throws(WalkFailure) {
            try walk.value(0, value.byteCount, depth: 0, inArray: false)
        } catch {
            let path = FieldLocator.path(inValue: value, at: error.offset)
            throw InvalidDocument(error.reason, offset: error.offset, fieldPath: path)
        }
        return Result(isCanonical: walk.isCanonical, size: walk.size)
    }
}

/// Finds out to which field a byte offset belongs, for messages; only after something went wrong.
enum FieldLocator {
    static func path(inFields bytes: RawSpan, at offset: Int) -> String {
        var path = ""
        descend(entries: bytes, start: 0, tag: UInt32(DocumentTag.field), offset: offset, path: &path, depth: 0)
        return path
    }

    static func path(inValue bytes: RawSpan, at offset: Int) -> String {
        var path = ""
        descend(value: bytes, start: 0, offset: offset, path: &path, depth: 0)
        return path
    }

    /// Goes into the entry that covers `offset`, which counts from the outermost bytes as `start` does.
    private static func descend(
        entries: RawSpan, start: Int, tag: UInt32, offset: Int, path: inout String, depth: Int
    ) {
        var reader = WireReader(entries)
        while let field = try? reader.nextTag() {
            guard field.rawValue == tag, let entry = try? reader.lengthDelimited() else {
                guard field.rawValue != tag, (try? reader.skip(field)) != nil else { return }
                continue
            }
            if start + reader.position < offset { continue }
            let entryStart = start + reader.position - entry.byteCount
            var parts = WireReader(entry)
            while let part = try? parts.nextTag(), let payload = try? parts.span(part) {
                if part.fieldNumber == FieldNumber.MapEntry.key {
                    // The key may be what is wrong: show no more than its beginning.
                    let name = [UInt8](copying: payload.extracting(first: 200))
                    if !path.isEmpty { path += "." }
                    path += String(decoding: FieldPath.quoted(name), as: UTF8.self)
                } else if part.fieldNumber == FieldNumber.MapEntry.value {
                    let valueStart = entryStart + parts.position - payload.byteCount
                    if valueStart <= offset {
                        descend(value: payload, start: valueStart, offset: offset, path: &path, depth: depth + 1)
                    }
                }
            }
            return
        }
    }

    private static func descend(value: RawSpan, start: Int, offset: Int, path: inout String, depth: Int) {
        if depth > Limits.nestingDepth { return }
        var reader = WireReader(value)
        while let tag = try? reader.nextTag() {
            guard tag.rawValue == ValueTag.map || tag.rawValue == ValueTag.array else {
                guard (try? reader.skip(tag)) != nil else { return }
                continue
            }
            guard let payload = try? reader.lengthDelimited() else { return }
            if start + reader.position < offset { continue }
            let payloadStart = start + reader.position - payload.byteCount
            if tag.rawValue == ValueTag.map {
                return descend(
                    entries: payload, start: payloadStart, tag: UInt32(DocumentTag.mapEntry), offset: offset,
                    path: &path, depth: depth)
            }
            var elements = WireReader(payload)
            var index = 0
            while let element = try? elements.nextTag(), let bytes = try? elements.span(element) {
                if payloadStart + elements.position >= offset {
                    path += "[\(index)]"
                    let elementStart = payloadStart + elements.position - bytes.byteCount
                    return descend(value: bytes, start: elementStart, offset: offset, path: &path, depth: depth + 1)
                }
                index += 1
            }
            return
        }
    }
}
