package import Basics
package import DocumentModel

/// Writes documents as entities of a managed export, without a tree of values.
///
/// Fields are properties that are not indexed, as the official emulator writes them; an empty array is an indexed one.
/// Create and update times have no place in an entity. Entities of equal documents have equal bytes.
package struct EntityWriter {
    private let project: [UInt8]
    private let database: [UInt8]

    /// - Parameter database: where the documents are.
    package init(database: DatabaseName) {
        project = Array(database.project.utf8)
        self.database = Array(database.database.utf8)
    }

    /// Appends the `EntityProto` of a document. Each element of an array repeats the name of its field, so an entity
    /// can have a thousand times the bytes of the document: beyond `LogFragment.recordBytesMax` no elements are
    /// written, and the caller refuses it.
    ///
    /// - Parameters:
    ///   - path: the document's path below `documents`.
    ///   - fields: canonical document bytes.
    package func append(path: RawSpan, fields: RawSpan, to output: inout ByteBuffer) throws(InvalidDocument) {
        output.withLengthPrefix(field: EntityField.key) { output in
            output.appendApp(project: project.byteSpan)
            output.withLengthPrefix(field: ReferenceField.path) { Self.append(path: path, elementsMax: .max, to: &$0) }
            output.appendDatabaseID(database.byteSpan)
        }
        try Self.properties(fields, depth: 0, to: &output)
        output.withLengthPrefix(field: EntityField.entityGroup) { Self.append(path: path, elementsMax: 1, to: &$0) }
    }

    private static func append(path: RawSpan, elementsMax: Int, to output: inout ByteBuffer) {
        output.appendPathElements(
            path, element: PathElementField.element, kind: PathElementField.kind, id: PathElementField.id,
            name: PathElementField.name, elementsMax: elementsMax)
    }

    /// Writes the entries of a document or a map as properties: empty arrays, which are indexed, before the others.
    private static func properties(
        _ entries: RawSpan, depth: Int, to output: inout ByteBuffer
    ) throws(InvalidDocument) {
        if depth > Limits.nestingDepth { throw InvalidDocument(.nestedTooDeeply, offset: 0) }
        var arrays = FieldEntryReader(entries)
        while try arrays.next() {
            if isEmptyArray(arrays.value) {
                emptyArray(arrays.key, meaning: Meaning.emptyArray, to: &output)
            } else if let vector = vectorElements(arrays.value), vector.isEmpty {
                emptyArray(arrays.key, meaning: Meaning.vector, to: &output)
            }
        }
        var reader = FieldEntryReader(entries)
        while try reader.next() {
            var value = WireReader(reader.value)
            if let vector = vectorElements(reader.value) {
                try elements(WireReader(vector), of: reader.key, meaning: Meaning.vector, depth: depth, to: &output)
            } else if let tag = try value.nextTag(), tag.rawValue == ValueTag.array {
                try elements(try value.message(tag), of: reader.key, meaning: nil, depth: depth, to: &output)
            } else {
                try property(reader.key, reader.value, multiple: false, meaning: nil, depth: depth, to: &output)
            }
        }
    }

    private static func isEmptyArray(_ value: RawSpan) -> Bool {
        value.byteCount == 2 && value[byteAt: 0] == UInt8(ValueTag.array) && value[byteAt: 1] == 0
    }

    /// The elements of a vector; nil for another value.
    @_lifetime(copy value)
    private static func vectorElements(_ value: RawSpan) -> RawSpan? {
        guard let map = DocumentBytes.mapEntries(of: value), VectorBytes.isVector(mapEntries: map) else { return nil }
        return VectorBytes.elementBytes(mapEntries: map)
    }

    /// Writes an array without elements as one property without a value.
    private static func emptyArray(_ name: RawSpan, meaning: Int, to output: inout ByteBuffer) {
        output.withLengthPrefix(field: EntityField.property) { output in
            output.appendField(PropertyField.meaning, varint: UInt64(meaning))
            output.appendField(PropertyField.name, bytes: name)
            output.appendField(PropertyField.multiple, boolean: false)
            output.withLengthPrefix(field: PropertyField.value) { _ in }
        }
    }

    /// Writes each element as a property of the same name.
    private static func elements(
        _ elements: consuming WireReader, of name: RawSpan, meaning: Int?, depth: Int, to output: inout ByteBuffer
    ) throws(InvalidDocument) {
        while output.count <= LogFragment.recordBytesMax, let tag = try elements.nextTag() {
            let element = try elements.span(tag)
            try property(name, element, multiple: true, meaning: meaning, depth: depth + 1, to: &output)
        }
    }

    /// Writes one property that is not indexed.
    ///
    /// - Parameters:
    ///   - value: a `Value` message other than an array.
    ///   - meaning: nil for that of the value's type.
    private static func property(
        _ name: RawSpan, _ value: RawSpan, multiple: Bool, meaning: Int?, depth: Int, to output: inout ByteBuffer
    ) throws(InvalidDocument) {
        var reader = WireReader(value)
        guard let tag = try reader.nextTag() else { throw InvalidDocument(.valueTypeMissing, offset: 0) }
        try output.withLengthPrefix(field: EntityField.rawProperty) { (output) throws(InvalidDocument) in
            if let meaning = meaning ?? Self.meaning(of: tag) {
                output.appendField(PropertyField.meaning, varint: UInt64(meaning))
            }
            output.appendField(PropertyField.name, bytes: name)
            output.appendField(PropertyField.multiple, boolean: multiple)
            try output.withLengthPrefix(field: PropertyField.value) { (output) throws(InvalidDocument) in
                try Self.value(tag, &reader, depth: depth, to: &output)
            }
        }
    }

    private static func meaning(of tag: WireTag) -> Int? {
        switch tag.rawValue {
        case ValueTag.timestamp: Meaning.time
        case ValueTag.geoPoint: Meaning.point
        case ValueTag.bytes: Meaning.bytes
        case ValueTag.map: Meaning.map
        default: nil
        }
    }

    /// Writes the contents of a `PropertyValue`.
    private static func value(
        _ tag: WireTag, _ reader: inout WireReader, depth: Int, to output: inout ByteBuffer
    ) throws(InvalidDocument) {
        switch tag.rawValue {
        case ValueTag.null: return
        case ValueTag.boolean: output.appendField(PropertyValueField.boolean, boolean: try reader.boolean(tag))
        case ValueTag.integer: output.appendField(PropertyValueField.integer, varint: try reader.varint())
        case ValueTag.double: output.appendField(PropertyValueField.double, double: try reader.double(tag))
        case ValueTag.timestamp:
            output.appendField(PropertyValueField.integer, int64: try reader.timestamp(tag).microseconds)
        case ValueTag.string, ValueTag.bytes:
            output.appendField(PropertyValueField.string, bytes: try reader.span(tag))
        case ValueTag.reference: try reference(try reader.span(tag), to: &output)
        case ValueTag.geoPoint:
            let point = try GeoPointValue(wire: try reader.span(tag))
            output.appendTag(field: PropertyValueField.point, .startGroup)
            output.appendField(PropertyValueField.pointLatitude, double: point.latitude)
            output.appendField(PropertyValueField.pointLongitude, double: point.longitude)
            output.appendTag(field: PropertyValueField.point, .endGroup)
        case ValueTag.map:
            let map = try reader.span(tag)
            try output.withLengthPrefix(field: PropertyValueField.string) { (output) throws(InvalidDocument) in
                output.withLengthPrefix(field: EntityField.key) { output in
                    output.appendField(ReferenceField.app, bytes: [])
                    output.appendField(ReferenceField.path, bytes: [])
                }
                try properties(map, depth: depth + 1, to: &output)
                output.appendField(EntityField.entityGroup, bytes: [])
            }
        default: throw InvalidDocument(.arrayInArray, offset: 0)
        }
    }

    /// Writes the group of a reference.
    private static func reference(_ name: RawSpan, to output: inout ByteBuffer) throws(InvalidDocument) {
        guard let view = try? ResourceNameView(name, rules: .query), view.isDocument,
            let parts = DatabaseName.parts(of: name)
        else { throw InvalidDocument(.invalidReference, offset: 0) }
        output.appendTag(field: PropertyValueField.reference, .startGroup)
        output.appendApp(project: name.extracting(parts.project))
        output.appendPathElements(
            view.pathBytes, element: ReferenceElementField.element, kind: ReferenceElementField.kind,
            id: ReferenceElementField.id, name: ReferenceElementField.name)
        output.appendDatabaseID(name.extracting(parts.database))
        output.appendTag(field: PropertyValueField.reference, .endGroup)
    }
}
