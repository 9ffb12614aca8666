package import Basics
package import DocumentModel

/// Reads entities of a managed export as documents, without a tree of values.
///
/// Properties of both lists count, in any order. Types that Datastore alone has become the nearest type and are
/// counted; what has no nearest type is refused by name. The bytes of an entity are hostile: its size bounds time and
/// memory.
package struct EntityReader {
    /// Where the documents go.
    package let database: DatabaseName
    /// Whether references to documents of the exported database name those of the target.
    package let mapsReferences: Bool
    /// What was converted so far.
    package private(set) var conversions = ConversionCounts()
    /// The key of the last entity.
    package private(set) var key = EntityKey()

    package init(database: DatabaseName, mapsReferences: Bool) {
        self.database = database
        self.mapsReferences = mapsReferences
    }

    /// Reads an `EntityProto`.
    ///
    /// - Parameter fields: takes canonical document bytes. They have the form of a document; the caller checks its
    ///   limits and the rules of names.
    /// - Returns: the document's path below `documents`, not checked; ids have no slashes.
    package mutating func read(_ entity: RawSpan, into fields: inout ByteBuffer) throws(EntityProblem) -> [UInt8] {
        do {
            let contents = try EntityContents(entity)
            guard let keyBytes = contents.key else { throw EntityProblem("it has no key") }
            let keySpan = entity.extracting(keyBytes)
            let found = try KeyReader.read(key: keySpan)
            if found.path.isEmpty { throw EntityProblem("its key is empty") }
            key = EntityKey(
                project: String(repairingUTF8: keySpan.extracting(found.project)),
                database: found.database.map { String(repairingUTF8: keySpan.extracting($0)) } ?? "(default)",
                path: found.path)
            try append(contents.properties, of: entity, field: FieldNumber.Document.fields, depth: 0, to: &fields)
            return found.path
        } catch let problem as EntityProblem {
            throw problem
        } catch let invalid as InvalidDocument {
            throw EntityProblem(invalid)
        } catch {
            throw EntityProblem("\(error)")
        }
    }

    // MARK: Fields

    /// Writes properties as the entries of a document or a map.
    private mutating func append(
        _ properties: [EntityProperty], of entity: RawSpan, field: Int, depth: Int, to output: inout ByteBuffer
    ) throws {
        if depth > Limits.nestingDepth { throw InvalidDocument(.nestedTooDeeply, offset: 0) }
        var index = 0
        while index < properties.count {
            let name = entity.extracting(properties[index].name)
            var end = index + 1
            while end < properties.count, entity.extracting(properties[end].name).equalsBytes(name) { end += 1 }
            do {
                output.appendTag(field: field, .lengthDelimited)
                let entry = output.beginLength()
                output.appendField(FieldNumber.MapEntry.key, bytes: name)
                output.appendTag(field: FieldNumber.MapEntry.value, .lengthDelimited)
                let value = output.beginLength()
                try appendField(properties[index..<end], of: entity, depth: depth, to: &output)
                output.endLength(at: value)
                output.endLength(at: entry)
            } catch let problem as EntityProblem {
                throw problem.within(name)
            } catch let invalid as InvalidDocument {
                throw EntityProblem(invalid).within(name)
            }
            index = end
        }
    }

    /// Writes the `Value` message of one field: a single property, or the elements of an array.
    private mutating func appendField(
        _ properties: ArraySlice<EntityProperty>, of entity: RawSpan, depth: Int, to output: inout ByteBuffer
    ) throws {
        let first = properties[properties.startIndex]
        if !first.isMultiple {
            if properties.count > 1 { throw EntityProblem("it occurs several times and is not an array") }
            switch first.meaning {
            case Meaning.emptyArray: return appendArray(to: &output) { _ in }
            case Meaning.vector: return Self.appendVector(to: &output) { _ in }
            default: return try appendValue(first, of: entity, depth: depth, to: &output)
            }
        }
        if let single = properties.first(where: { !$0.isMultiple }) {
            // An array without elements in one list, and its elements in the other, have no meaning together.
            throw EntityProblem(
                single.meaning == Meaning.emptyArray
                    ? "it is an empty array and has elements" : "it is an array and a single value")
        }
        if first.meaning == Meaning.emptyArray, properties.count == 1 { return appendArray(to: &output) { _ in } }
        if first.meaning == Meaning.vector {
            return try Self.appendVector(to: &output) { output in
                for property in properties { try Self.appendDimension(property, of: entity, to: &output) }
            }
        }
        try appendArray(to: &output) { output in
            for property in properties {
                output.appendTag(field: FieldNumber.ArrayValue.values, .lengthDelimited)
                let element = output.beginLength()
                try appendValue(property, of: entity, depth: depth + 1, to: &output)
                output.endLength(at: element)
            }
        }
    }

    private func appendArray<Failure: Error>(
        to output: inout ByteBuffer, _ elements: (inout ByteBuffer) throws(Failure) -> Void
    ) throws(Failure) {
        try output.withLengthPrefix(field: FieldNumber.Value.arrayValue, elements)
    }

    /// Writes the map that is a vector.
    private static func appendVector<Failure: Error>(
        to output: inout ByteBuffer, _ dimensions: (inout ByteBuffer) throws(Failure) -> Void
    ) throws(Failure) {
        try output.withLengthPrefix(field: FieldNumber.Value.mapValue) { (output) throws(Failure) in
            appendEntry("__type__", to: &output) { output in
                output.appendField(FieldNumber.Value.stringValue, string: "__vector__")
            }
            try appendEntry("value", to: &output) { (output) throws(Failure) in
                try output.withLengthPrefix(field: FieldNumber.Value.arrayValue, dimensions)
            }
        }
    }

    private static func appendEntry<Failure: Error>(
        _ name: String, to output: inout ByteBuffer, _ value: (inout ByteBuffer) throws(Failure) -> Void
    ) throws(Failure) {
        try output.withLengthPrefix(field: FieldNumber.MapValue.fields) { (output) throws(Failure) in
            output.appendField(FieldNumber.MapEntry.key, string: name)
            try output.withLengthPrefix(field: FieldNumber.MapEntry.value, value)
        }
    }

    private static func appendDimension(
        _ property: EntityProperty, of entity: RawSpan, to output: inout ByteBuffer
    ) throws {
        let number: Double
        switch try PropertyContent(entity.extracting(property.value)) {
        case .double(let value): number = value
        case .integer(let value): number = Double(value)
        default: throw EntityProblem("it is a vector with an element that is not a number")
        }
        output.withLengthPrefix(field: FieldNumber.ArrayValue.values) { output in
            output.appendField(FieldNumber.Value.doubleValue, double: number.isNaN ? .nan : number)
        }
    }

    // MARK: Values

    /// Writes the contents of a `Value` message for one property.
    private mutating func appendValue(
        _ property: EntityProperty, of entity: RawSpan, depth: Int, to output: inout ByteBuffer
    ) throws {
        let bytes = entity.extracting(property.value)
        if property.meaning == Meaning.indexValue { throw EntityProblem("values of an index cannot be converted") }
        if let converted = ConvertedType(meaning: property.meaning) { conversions.add(converted) }
        switch try PropertyContent(bytes) {
        case .null: output.appendField(FieldNumber.Value.nullValue, varint: 0)
        case .boolean(let value): output.appendField(FieldNumber.Value.booleanValue, boolean: value)
        case .double(let value):
            output.appendField(FieldNumber.Value.doubleValue, double: value.isNaN ? .nan : value)
        case .integer(let value):
            if property.meaning == Meaning.time {
                output.appendField(FieldNumber.Value.timestampValue, timestamp: TimestampValue(microseconds: value))
            } else {
                output.appendField(FieldNumber.Value.integerValue, int64: value)
            }
        case .string(let range):
            let text = bytes.extracting(range)
            switch property.meaning {
            case Meaning.bytes, Meaning.byteString: output.appendField(FieldNumber.Value.bytesValue, bytes: text)
            case Meaning.map: try appendMap(text, depth: depth, to: &output)
            default: output.appendField(FieldNumber.Value.stringValue, bytes: text)
            }
        case .point(let point): Value.geoPoint(point).encode(into: &output)
        case .user(let range):
            conversions.add(.user)
            output.appendField(FieldNumber.Value.stringValue, bytes: bytes.extracting(range))
        case .reference(let range): try appendReference(bytes.extracting(range), to: &output)
        }
    }

    private mutating func appendMap(_ entity: RawSpan, depth: Int, to output: inout ByteBuffer) throws {
        let contents = try EntityContents(entity)
        if let key = contents.key, let inner = try? KeyReader.read(key: entity.extracting(key)), !inner.path.isEmpty {
            conversions.add(.embeddedKey)
        }
        output.appendTag(field: FieldNumber.Value.mapValue, .lengthDelimited)
        let start = output.beginLength()
        try append(
            contents.properties, of: entity, field: FieldNumber.MapValue.fields, depth: depth + 1, to: &output)
        output.endLength(at: start)
    }

    private mutating func appendReference(_ group: RawSpan, to output: inout ByteBuffer) throws {
        let reference = try KeyReader.read(reference: group)
        let project = String(repairingUTF8: group.extracting(reference.project))
        let databaseID = reference.database.map { String(repairingUTF8: group.extracting($0)) } ?? "(default)"
        var name = "projects/\(project)/databases/\(databaseID)"
        if name != database.description {
            if mapsReferences, project == key.project, databaseID == key.database {
                name = database.description
            } else {
                conversions.foreignReferences += 1
            }
        }
        output.withLengthPrefix(field: FieldNumber.Value.referenceValue) { output in
            output.append(utf8: name + "/documents/")
            output.append(reference.path)
        }
    }
}
