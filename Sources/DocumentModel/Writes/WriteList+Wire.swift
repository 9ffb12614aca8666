// Reading writes from the wire into a list, and writing a list out.

package import Basics

extension WriteList {
    private typealias Field = FieldNumber.Write

    /// Reads one `Write` message and appends it.
    ///
    /// The document is validated and stored in canonical form. When this throws, the list is as it was.
    ///
    /// - Throws: `INVALID_ARGUMENT` naming the document, and the field if one is the cause.
    package mutating func append(wire: RawSpan) throws(RequestError) {
        do {
            let parts = try WriteParts(wire)
            guard let kind = parts.kind else { throw RequestError.invalidArgument("A write must have an operation.") }
            let mask = parts.hasMask ? try DocumentMask(wire: parts.mask) : nil
            let precondition = parts.hasPrecondition ? try Precondition(wire: parts.precondition) : nil
            if kind == .transform, parts.hasUpdateTransforms {
                throw RequestError.invalidArgument("a transform must not specify a update transform.")
            }
            let transforms =
                kind == .transform
                ? try FieldTransform.list(wire: parts.transform, field: FieldNumber.DocumentTransform.fieldTransforms)
                : parts.hasUpdateTransforms
                    ? try FieldTransform.list(wire: wire, field: FieldNumber.Write.updateTransforms) : []
            if parts.hasScatteredFields {
                let fields = try WriteParts.gatherFields(document: parts.document)
                try append(
                    kind, name: parts.name, fields: fields.byteSpan, mask: mask, precondition: precondition,
                    transforms: transforms)
            } else {
                try append(
                    kind, name: parts.name, fields: parts.fields, mask: mask, precondition: precondition,
                    transforms: transforms)
            }
        } catch {
            throw RequestError(writeFault: error)
        }
    }

    /// Appends the writes as the given repeated field of a message.
    package func encode(field: Int, into writer: inout ByteBuffer) {
        for write in writes {
            writer.withLengthPrefix(field: field) { encode(write, into: &$0) }
        }
    }

    /// Appends the fields of one `Write` message.
    package func encode(_ write: Write, into writer: inout ByteBuffer) {
        switch write.kind {
        case .update:
            writer.withLengthPrefix(field: Field.update) { writer in
                writer.appendField(FieldNumber.Document.name, bytes: name(of: write))
                writer.append(fields(of: write))
            }
        case .delete: writer.appendField(Field.delete, bytes: name(of: write))
        case .verify: writer.appendField(Field.verify, bytes: name(of: write))
        case .transform:
            writer.withLengthPrefix(field: Field.transform) { writer in
                writer.appendField(FieldNumber.DocumentTransform.document, bytes: name(of: write))
                for transform in write.transforms {
                    writer.withLengthPrefix(field: FieldNumber.DocumentTransform.fieldTransforms) {
                        transform.encode(into: &$0)
                    }
                }
            }
        }
        if let mask = write.mask { writer.withLengthPrefix(field: Field.updateMask) { mask.encode(into: &$0) } }
        if let precondition = write.precondition {
            writer.withLengthPrefix(field: Field.currentDocument) { precondition.encode(into: &$0) }
        }
        if write.kind == .update {
            for transform in write.transforms {
                writer.withLengthPrefix(field: Field.updateTransforms) { transform.encode(into: &$0) }
            }
        }
    }
}

extension DocumentMask {
    private typealias Field = FieldNumber.DocumentMask

    /// Reads the message.
    package init(wire: RawSpan) throws(RequestError) {
        self.init(paths: [])
        do {
            var reader = WireReader(wire)
            while let tag = try reader.nextTag() {
                if tag.fieldNumber == Field.fieldPaths {
                    paths.append(try FieldPath(try reader.string(tag)))
                } else {
                    try reader.skip(tag)
                }
            }
        } catch {
            throw RequestError(writeFault: error)
        }
    }

    /// Appends the message's fields.
    package func encode(into writer: inout ByteBuffer) {
        for path in paths { writer.appendField(Field.fieldPaths, string: path.description) }
    }
}

extension Precondition {
    private typealias Field = FieldNumber.Precondition

    /// Reads the message; nil if it asks for nothing.
    package init?(wire: RawSpan) throws(InvalidDocument) {
        var condition: Precondition?
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.exists: condition = .exists(try reader.boolean(tag))
            case Field.updateTime: condition = .updateTime(try reader.timestamp(tag))
            default: try reader.skip(tag)
            }
        }
        guard let condition else { return nil }
        self = condition
    }

    /// Appends the message's field.
    package func encode(into writer: inout ByteBuffer) {
        switch self {
        case .exists(let exists): writer.appendField(Field.exists, boolean: exists)
        case .updateTime(let time): writer.appendField(Field.updateTime, timestamp: time)
        }
    }
}

extension RequestError {
    /// The error of reading a write, as the client gets it.
    fileprivate init(writeFault error: any Error) {
        switch error {
        case let error as RequestError: self = error
        case let error as InvalidDocument: self.init(error)
        default: self.init(.internal, "The server failed.")
        }
    }
}
