// From the bytes of a document to a line of JSON. The mapping is docs/json-lines.md; `JSONLineParser` reads what this
// writes.

internal import Basics
package import DocumentModel

/// Writes documents as lines of JSON; one instance serves any number of documents, one after the other.
package struct JSONLineWriter {
    /// `projects/P/databases/D/documents/`: references below it are written relative.
    private let documentsRoot: [UInt8]
    private var output: [UInt8] = []

    /// - Parameter database: `projects/P/databases/D`.
    package init(database: String) {
        documentsRoot = Array("\(database)/documents/".utf8)
        output.reserveCapacity(64 << 10)
    }

    /// The line for a document, without its line feed; valid until the next call.
    ///
    /// - Parameters:
    ///   - name: what `__name__` is to say: the document's path below the exported collection.
    ///   - fields: canonical document bytes.
    package mutating func line(name: String, fields: RawSpan) throws(InvalidDocument) -> [UInt8] {
        output.removeAll(keepingCapacity: true)
        output.append(0x7B)
        append("\"__name__\":")
        name.withUTF8Span { appendString($0) }
        try members(WireReader(fields), tag: UInt32(DocumentTag.field), needsComma: true)
        output.append(0x7D)
        return output
    }

    /// The JSON of one value; valid until the next call.
    ///
    /// - Parameter value: a canonical value's bytes.
    package mutating func json(of value: RawSpan) throws(InvalidDocument) -> [UInt8] {
        output.removeAll(keepingCapacity: true)
        try self.value(value)
        return output
    }

    /// Writes the entries of a map as members, commas between them.
    private mutating func members(_ map: consuming WireReader, tag entryTag: UInt32, needsComma: Bool)
        throws(InvalidDocument)
    {
        var needsComma = needsComma
        while let tag = try map.nextTag() {
            guard tag.rawValue == entryTag else {
                try map.skip(tag)
                continue
            }
            if needsComma { output.append(0x2C) }
            needsComma = true
            var entry = try map.message(tag)
            let member = try Self.keyAndValue(&entry)
            appendString(member.key)
            output.append(0x3A)
            try value(member.value)
        }
    }

    /// Key and value of a map entry; an absent member is empty, as protobuf has it.
    @_lifetime(copy entry)
    private static func keyAndValue(_ entry: inout WireReader) throws(InvalidDocument) -> MapEntry {
        var key = entry.bytes.extracting(0..<0)
        var value = key
        while let tag = try entry.nextTag() {
            switch tag.fieldNumber {
            case FieldNumber.MapEntry.key: key = try entry.span(tag)
            case FieldNumber.MapEntry.value: value = try entry.span(tag)
            default: try entry.skip(tag)
            }
        }
        return MapEntry(key: key, value: value)
    }

    private mutating func value(_ bytes: RawSpan) throws(InvalidDocument) {
        var reader = WireReader(bytes)
        guard let tag = try reader.nextTag() else { throw InvalidDocument(.valueTypeMissing, offset: 0) }
        switch tag.rawValue {
        case ValueTag.null: append("null")
        case ValueTag.boolean: append(try reader.boolean(tag) ? "true" : "false")
        case ValueTag.integer: append(String(try reader.int64(tag)))
        case ValueTag.double: appendDouble(try reader.double(tag))
        case ValueTag.string: appendString(try reader.span(tag))
        case ValueTag.bytes:
            append("{\"$bytes\":\"")
            Base64.append(try reader.span(tag), to: &output)
            append("\"}")
        case ValueTag.timestamp:
            append("{\"$timestamp\":\"")
            RFC3339.append(try reader.timestamp(tag).microseconds, to: &output)
            append("\"}")
        case ValueTag.reference:
            let name = try reader.span(tag)
            append("{\"$reference\":")
            appendString(reference(name))
            output.append(0x7D)
        case ValueTag.geoPoint:
            var point = try reader.message(tag)
            var latitude = 0.0
            var longitude = 0.0
            while let field = try point.nextTag() {
                switch field.fieldNumber {
                case FieldNumber.CommonType.LatLng.latitude: latitude = try point.double(field)
                case FieldNumber.CommonType.LatLng.longitude: longitude = try point.double(field)
                default: try point.skip(field)
                }
            }
            append("{\"$geoPoint\":[")
            appendDouble(latitude)
            output.append(0x2C)
            appendDouble(longitude)
            append("]}")
        case ValueTag.array: try array(try reader.message(tag))
        case ValueTag.map: try map(try reader.message(tag))
        default: throw InvalidDocument(.valueTypeMissing, offset: 0)
        }
    }

    /// The path within the exported database, or the full name where that does not say the same.
    @_lifetime(copy name)
    private func reference(_ name: RawSpan) -> RawSpan {
        let isInside = unsafe name.startsWith(documentsRoot.span.bytes) && name.byteCount > documentsRoot.count
        guard isInside else { return name }
        let path = name.extracting(documentsRoot.count..<name.byteCount)
        return ReferenceText.isFullName(path) ? name : path
    }

    private mutating func array(_ elements: consuming WireReader) throws(InvalidDocument) {
        output.append(0x5B)
        var needsComma = false
        while let tag = try elements.nextTag() {
            if needsComma { output.append(0x2C) }
            needsComma = true
            try value(try elements.span(tag))
        }
        output.append(0x5D)
    }

    private mutating func map(_ entries: WireReader) throws(InvalidDocument) {
        switch try MapShape(entries) {
        case .vector(let elements):
            append("{\"$vector\":")
            try array(WireReader(elements))
            output.append(0x7D)
        case .looksExtended:
            append("{\"$map\":{")
            try members(entries, tag: UInt32(DocumentTag.mapEntry), needsComma: false)
            append("}}")
        case .plain:
            output.append(0x7B)
            try members(entries, tag: UInt32(DocumentTag.mapEntry), needsComma: false)
            output.append(0x7D)
        }
    }

    /// What a map has to be written as.
    private enum MapShape: ~Escapable {
        /// The elements: the bytes of an `ArrayValue`.
        case vector(RawSpan)
        /// One member whose name begins with `$`.
        case looksExtended
        case plain

        @_lifetime(copy entries)
        init(_ entries: WireReader) throws(InvalidDocument) {
            var ahead = WireReader(entries.bytes)
            guard let first = try ahead.nextTag() else {
                self = .plain
                return
            }
            var entry = try ahead.message(first)
            let type = try JSONLineWriter.keyAndValue(&entry)
            guard let second = try ahead.nextTag() else {
                self = type.key.byteCount > 0 && type.key[byteAt: 0] == 0x24 ? .looksExtended : .plain
                return
            }
            self = .plain
            // {__type__: "__vector__", value: [...]}: two members in this order.
            var marker = WireReader(type.value)
            guard type.key.equalsUTF8(of: Value.vectorTypeKey),
                let markerTag = try marker.nextTag(),
                markerTag.rawValue == ValueTag.string,
                try marker.span(markerTag).equalsUTF8(of: Value.vectorTypeName)
            else { return }
            var last = try ahead.message(second)
            var array = WireReader(try JSONLineWriter.keyAndValue(&last).value)
            guard ahead.isAtEnd, let tag = try array.nextTag(), tag.rawValue == ValueTag.array else { return }
            self = .vector(try array.span(tag))
        }
    }

    // MARK: Text

    private mutating func append(_ text: String) { output.append(contentsOf: text.utf8) }

    private mutating func appendDouble(_ value: Double) {
        if value.isFinite {
            append(value.description)
        } else {
            append("{\"$double\":\"")
            append(value.isNaN ? "NaN" : value < 0 ? "-Infinity" : "Infinity")
            append("\"}")
        }
    }

    private mutating func appendString(_ bytes: RawSpan) { JSONText.appendQuoted(bytes, to: &output) }
}

/// One entry of a map, lent.
private struct MapEntry: ~Escapable {
    let key: RawSpan
    let value: RawSpan
}
