// `Document`: 1 name, 2 fields (a map, one entry after the other), 3 create_time, 4 update_time.

package import Basics
package import DocumentModel

/// A document as a message lends it: a name, the bytes of its `fields` entries, and its times.
package struct DocumentMessageView: ~Escapable {
    private typealias Field = FieldNumber.Document

    /// The full resource name in UTF-8; not checked.
    package private(set) var name: RawSpan
    /// The `fields` entries with their tags, one after the other: the form in which documents are stored. Where the
    /// sender put other fields between entries this is only the last run of them: see ``isFragmented``.
    package private(set) var fieldsRun: RawSpan
    /// Whether other fields stand between the `fields` entries, so that ``fieldsRun`` does not hold them all.
    package private(set) var isFragmented = false
    /// Nil where the message has none, as in a missing document of a listing.
    package private(set) var createTime: TimestampValue?
    package private(set) var updateTime: TimestampValue?

    private let wire: RawSpan

    @_lifetime(copy wire)
    package init(_ wire: RawSpan) throws {
        self.wire = wire
        name = wire.extracting(first: 0)
        fieldsRun = name
        var runStart = 0
        var runEnd = 0
        var reader = WireReader(wire)
        var fieldStart = 0
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.name: name = try reader.span(tag)
            case Field.fields:
                _ = try reader.span(tag)
                if runEnd != fieldStart {
                    isFragmented = isFragmented || runEnd != 0
                    runStart = fieldStart
                }
                runEnd = reader.position
            case Field.createTime: createTime = try reader.timestamp(tag)
            case Field.updateTime: updateTime = try reader.timestamp(tag)
            default: try reader.skip(tag)
            }
            fieldStart = reader.position
        }
        fieldsRun = wire.extracting(runStart..<runEnd)
    }

    /// The `fields` entries, copied and joined.
    package func copyFields() -> [UInt8] {
        guard isFragmented else { return [UInt8](copying: fieldsRun) }
        var joined: [UInt8] = []
        var reader = WireReader(wire)
        var fieldStart = 0
        // Every byte was read once by `init`, so nothing throws here.
        while let tag = try? reader.nextTag() {
            guard (try? reader.skip(tag)) != nil else { break }
            if tag.fieldNumber == Field.fields {
                joined += [UInt8](copying: wire.extracting(fieldStart..<reader.position))
            }
            fieldStart = reader.position
        }
        return joined
    }
}

/// A document with its own storage.
package struct DocumentMessage: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.Document

    /// The full resource name.
    package var name: String
    /// The `fields` entries with their tags, one after the other.
    package var fields: [UInt8]
    package var createTime: TimestampValue?
    package var updateTime: TimestampValue?

    package init(
        name: String, fields: [UInt8], createTime: TimestampValue? = nil, updateTime: TimestampValue? = nil
    ) {
        self.name = name
        self.fields = fields
        self.createTime = createTime
        self.updateTime = updateTime
    }

    package init(wire: RawSpan) throws {
        let view = try DocumentMessageView(wire)
        guard let name = String(validatingUTF8: view.name) else { throw InvalidDocument(.invalidUTF8, offset: 0) }
        self.init(name: name, fields: view.copyFields(), createTime: view.createTime, updateTime: view.updateTime)
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.writeIfSet(Field.name, string: name)
        writer.append(fields)
        if let createTime { writer.appendField(Field.createTime, timestamp: createTime) }
        if let updateTime { writer.appendField(Field.updateTime, timestamp: updateTime) }
    }
}
