import Basics

/// The parts of a `Write` message, borrowed from its bytes: name, fields, mask, precondition and transforms.
///
/// The view copies nothing and does not validate the contents. Field numbers: `google/firestore/v1/write.proto` and
/// `document.proto`. Field 5, `verify`, is not in the public schema; transactions of mobile clients send it.
struct WriteParts: ~Escapable {
    private typealias Field = FieldNumber.Write

    private(set) var kind: Write.Kind?
    /// The document's resource name, unchecked.
    private(set) var name: RawSpan
    /// The `Document` message of an update.
    private(set) var document: RawSpan
    /// The run of `fields` entries in `document`; all of them unless `hasScatteredFields`.
    private(set) var fields: RawSpan
    /// Whether other fields stand between the `fields` entries.
    private(set) var hasScatteredFields = false
    /// The `DocumentMask` message; meaningful if `hasMask`.
    private(set) var mask: RawSpan
    private(set) var hasMask = false
    /// The `Precondition` message; meaningful if `hasPrecondition`.
    private(set) var precondition: RawSpan
    private(set) var hasPrecondition = false
    /// The `DocumentTransform` message of a transform.
    private(set) var transform: RawSpan
    private(set) var hasUpdateTransforms = false

    @_lifetime(copy wire)
    init(_ wire: RawSpan) throws(InvalidDocument) {
        let empty = wire.extracting(first: 0)
        name = empty
        document = empty
        fields = empty
        mask = empty
        precondition = empty
        transform = empty
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.update:
                kind = .update
                document = try reader.span(tag)
            case Field.delete:
                kind = .delete
                name = try reader.span(tag)
            case Field.updateMask:
                mask = try reader.span(tag)
                hasMask = true
            case Field.currentDocument:
                precondition = try reader.span(tag)
                hasPrecondition = true
            case Field.verify:
                kind = .verify
                name = try reader.span(tag)
            case Field.transform:
                kind = .transform
                transform = try reader.span(tag)
            case Field.updateTransforms:
                try reader.skip(tag)
                hasUpdateTransforms = true
            default: try reader.skip(tag)
            }
        }
        if kind == .update { try readDocument() }
        if kind == .transform { try readTransform() }
    }

    /// Finds the name and the run of field entries in the `Document` message.
    private mutating func readDocument() throws(InvalidDocument) {
        var runStart = 0
        var runEnd = 0
        var reader = WireReader(document)
        name = document.extracting(first: 0)
        while true {
            let start = reader.position
            guard let tag = try reader.nextTag() else { break }
            switch tag.fieldNumber {
            case FieldNumber.Document.name: name = try reader.span(tag)
            case FieldNumber.Document.fields:
                try reader.expect(tag, .lengthDelimited)
                try reader.skip(tag)
                if runEnd == 0 {
                    runStart = start
                } else if runEnd != start {
                    hasScatteredFields = true
                }
                runEnd = reader.position
            default: try reader.skip(tag)
            }
        }
        fields = document.extracting(runStart..<runEnd)
    }

    private mutating func readTransform() throws(InvalidDocument) {
        name = transform.extracting(first: 0)
        var reader = WireReader(transform)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == FieldNumber.DocumentTransform.document {
                name = try reader.span(tag)
            } else {
                try reader.skip(tag)
            }
        }
    }

    /// The `fields` entries of a `Document` message, joined.
    static func gatherFields(document: RawSpan) throws(InvalidDocument) -> [UInt8] {
        var gathered = ByteBuffer(capacity: document.byteCount)
        var reader = WireReader(document)
        while true {
            let start = reader.position
            guard let tag = try reader.nextTag() else { break }
            try reader.skip(tag)
            if tag.fieldNumber == FieldNumber.Document.fields {
                gathered.append(document.extracting(start..<reader.position))
            }
        }
        return gathered.copyBytes()
    }
}
