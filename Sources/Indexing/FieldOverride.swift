// What `firestore.indexes.json` says of single fields: which of their indexes are kept, and whether they make
// documents expire.
//
//     no index at all: an exemption        {"collectionGroup": "c", "fieldPath": "notes", "indexes": []}
//     every field without its own entry    {"collectionGroup": "c", "fieldPath": "*", "indexes": [{"order": ...}]}
//     automatic indexes; documents expire  {"collectionGroup": "c", "fieldPath": "until", "ttl": true}
//
// A field without an entry has that of the nearest map around it, else that of `*`, else every index of scope
// COLLECTION.
//
// Entries with a last use are not declared: the store makes them for indexes on demand (docs/indexes.md). Such an entry
// holds for exactly its field, and `*` for every field without another entry.

package import Basics
package import DocumentModel

/// An entry of `fieldOverrides`.
package struct FieldOverride: Sendable, Hashable {
    /// Indexes of a single field.
    package struct Modes: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let ascending = Modes(rawValue: 1)
        package static let descending = Modes(rawValue: 2)
        package static let contains = Modes(rawValue: 4)
        package static let groupAscending = Modes(rawValue: 8)
        package static let groupDescending = Modes(rawValue: 16)
        package static let groupContains = Modes(rawValue: 32)

        /// What a field without an entry has.
        package static let automatic: Modes = [.ascending, .descending, .contains]
        fileprivate static let all = Modes(rawValue: 63)
    }

    /// The id of the group's collections, without a path.
    package var collectionID: String { collection.string }
    /// The same, which is compared by its bytes.
    let collection: UTF8Text
    /// Nil is `*`.
    package var field: FieldPath?
    /// Nil leaves the field as it would be without the entry.
    package var indexes: Modes?
    /// Documents expire when the time in the field has come.
    package var expires: Bool
    /// When a query last used the index of an entry that the store made on demand, in seconds since 1970; nil for a
    /// declared entry.
    package var lastUse: UInt64?

    package init(
        collectionID: String, field: FieldPath?, indexes: Modes?, expires: Bool = false, lastUse: UInt64? = nil
    ) {
        collection = UTF8Text(collectionID)
        self.field = field
        self.indexes = indexes
        self.expires = expires
        self.lastUse = lastUse
    }

    /// Whether the store made the entry on demand.
    package var isAdaptive: Bool { lastUse != nil }

    /// The entry without the time of its last use: equal for entries that differ in nothing else.
    package var ignoringUse: FieldOverride {
        var copy = self
        if isAdaptive { copy.lastUse = 0 }
        return copy
    }

    /// The modes of a field by the entries of its collection group.
    package static func modes(of field: [[UInt8]], by overrides: [FieldOverride]) -> Modes {
        var exact: Modes?
        for override in overrides where override.isAdaptive && override.field?.utf8Segments == field {
            exact = (exact ?? []).union(override.indexes ?? [])
        }
        return exact ?? inheritedModes(of: field, by: overrides)
    }

    /// The modes of a field that has no entry on demand.
    static func inheritedModes(of field: [[UInt8]], by overrides: [FieldOverride]) -> Modes {
        var nearest: (count: Int, modes: Modes) = (-1, .automatic)
        for override in overrides {
            guard let modes = override.indexes else { continue }
            let path = override.field?.utf8Segments ?? []
            if override.isAdaptive, !path.isEmpty { continue }
            if path.count > nearest.count, field.starts(with: path) { nearest = (path.count, modes) }
        }
        return nearest.modes
    }

    /// The indexes over the collection group that the entry asks for, one to find expired documents by among them.
    package var shapes: [IndexShape] {
        guard let field else { return [] }
        let modes = indexes ?? []
        var shapes: [IndexShape] = []
        // One entry serves both directions.
        if expires || !modes.isDisjoint(with: [.groupAscending, .groupDescending]) {
            shapes.append(.group(collectionID, field, .ascending))
        }
        if modes.contains(.groupContains) { shapes.append(.group(collectionID, field, .contains)) }
        return shapes
    }
}

extension IndexShape {
    /// The index over one field of a collection group; the ascending one finds what has expired.
    package static func group(_ collectionID: String, _ field: FieldPath, _ kind: Part.Kind) -> IndexShape {
        IndexShape(collectionID: collectionID, isGroup: true, parts: [Part(field: field, kind: kind)])
    }
}

// MARK: Text and bytes

extension FieldOverride {
    /// The entry of `firestore.indexes.json`.
    package var json: String {
        var text = "{\"collectionGroup\":\(JSONText.quoted(collectionID)),"
        text += "\"fieldPath\":\(JSONText.quoted(field.map { "\($0)" } ?? "*"))"
        if expires { text += ",\"ttl\":true" }
        if let indexes { text += ",\"indexes\":[\(indexes.json)]" }
        if let lastUse {
            text += ",\"adaptive\":true"
            if lastUse > 0 {
                var date: [UInt8] = []
                CalendarDate(secondsSinceEpoch: Int64(min(lastUse, 1 << 36))).appendRFC3339(to: &date)
                text += ",\"lastUsed\":\"\(String(decoding: date, as: UTF8.self))Z\""
            }
        }
        return text + "}"
    }

    package func append(to writer: inout ByteBuffer) {
        writer.append(counted: collectionID)
        writer.append(counted: field.map { "\($0)" } ?? "")
        writer.append(byte: (indexes == nil ? 0 : 1) | (expires ? 2 : 0) | (isAdaptive ? 4 : 0))
        writer.append(byte: indexes?.rawValue ?? 0)
        if let lastUse { writer.appendVarint(lastUse) }
    }

    /// Reads what `append` wrote; nil when it is something else.
    init?(_ reader: inout WireReader) {
        guard let id = try? reader.lengthDelimited(), let path = try? reader.lengthDelimited(),
            reader.position + 2 <= reader.bytes.byteCount
        else { return nil }
        let (flags, modes) = (reader.bytes[byteAt: reader.position], reader.bytes[byteAt: reader.position + 1])
        reader.position += 2
        guard modes <= Modes.all.rawValue, flags <= 7 else { return nil }
        collection = UTF8Text(String(repairingUTF8: id))
        field = nil
        if path.byteCount > 0 {
            guard let parsed = try? FieldPath(String(repairingUTF8: path)) else { return nil }
            field = parsed
        }
        indexes = flags & 1 == 0 ? nil : Modes(rawValue: modes)
        expires = flags & 2 != 0
        if flags & 4 != 0 {
            guard let seconds = try? reader.varint() else { return nil }
            lastUse = seconds
        }
    }

    /// Appends a list of entries, counted.
    package static func append(_ overrides: [FieldOverride], to writer: inout ByteBuffer) {
        writer.appendVarint(UInt64(overrides.count))
        for override in overrides { override.append(to: &writer) }
    }

    /// Reads a list; nil when it is none.
    package static func list(_ reader: inout WireReader) -> [FieldOverride]? {
        guard let count = try? reader.varint(), count <= reader.bytes.byteCount else { return nil }
        var overrides: [FieldOverride] = []
        for _ in 0..<count {
            guard let override = FieldOverride(&reader) else { return nil }
            overrides.append(override)
        }
        return overrides
    }
}

extension FieldOverride.Modes {
    /// The indexes one by one: those of collections, then those of the group.
    package var singleFieldIndexes: [(isGroup: Bool, kind: IndexShape.Part.Kind)] {
        let kinds: [IndexShape.Part.Kind] = [.ascending, .descending, .contains]
        return [false, true].flatMap { isGroup in kinds.map { (isGroup: isGroup, kind: $0) } }
            .filter { contains($0.kind.mode(isGroup: $0.isGroup)) }
    }

    /// The members of a list of `indexes`.
    var json: String {
        singleFieldIndexes.map { index in
            "{\"queryScope\":\"\(index.isGroup ? "COLLECTION_GROUP" : "COLLECTION")\",\(index.kind.json)}"
        }.joined(separator: ",")
    }
}

extension ByteBuffer {
    fileprivate mutating func append(counted text: String) {
        appendVarint(UInt64(text.utf8.count))
        append(utf8: text)
    }
}

// MARK: A whole file

/// What a database's indexes are to be, beside those that are kept by themselves: the contents of a
/// `firestore.indexes.json`.
package struct IndexDeclaration: Sendable, Equatable {
    /// Entries of `indexes`.
    package var indexes: [IndexShape]
    /// Entries of `fieldOverrides`.
    package var fieldOverrides: [FieldOverride]

    package init(indexes: [IndexShape] = [], fieldOverrides: [FieldOverride] = []) {
        self.indexes = indexes
        self.fieldOverrides = fieldOverrides
    }

    /// Entries of both kinds that a database may have.
    package static let entriesMax = 1_000

    /// The indexes to be kept beside the automatic ones, each once.
    package var shapes: [IndexShape] {
        var known: Set<IndexShape> = []
        return (indexes + fieldOverrides.flatMap(\.shapes)).filter { known.insert($0).inserted }
    }

    /// - Throws: `INVALID_ARGUMENT` for too many entries, and for fields that have two, or that cannot make documents
    ///   expire.
    package func check() throws(RequestError) {
        if indexes.count + fieldOverrides.count > Self.entriesMax {
            throw .invalidArgument("A database may have \(Self.entriesMax) indexes and field overrides.")
        }
        try checkSearches()
        var fields: Set<FieldOverride> = []
        var expiring: Set<UTF8Text> = []
        for override in fieldOverrides {
            let name = "\(override.collectionID).\(override.field.map { "\($0)" } ?? "*")"
            let id = Array(override.collectionID.utf8)
            if id.contains(RelativePath.slash) {
                throw .invalidArgument("Collection id \"\(override.collectionID)\" must not contain a slash.")
            }
            if let problem = ResourceID.problem(id.byteSpan, isCollection: true, rules: .stored) {
                throw .invalidArgument("Invalid collection id \"\(override.collectionID)\": \(problem.text).")
            }
            if override.field?.isDocumentName == true {
                throw .invalidArgument("\(name): __name__ is not a field and cannot be overridden.")
            }
            let field = FieldOverride(collectionID: override.collectionID, field: override.field, indexes: nil)
            if !fields.insert(field).inserted { throw .invalidArgument("\(name) is overridden twice.") }
            if override.expires, override.field == nil {
                throw .invalidArgument("\(name): ttl needs the name of a field.")
            }
            if override.expires, !expiring.insert(override.collection).inserted {
                throw .invalidArgument("\(name): only one field of a collection group can have ttl.")
            }
        }
    }

    package func append(to writer: inout ByteBuffer) {
        FieldOverride.append(fieldOverrides, to: &writer)
        for shape in indexes {
            var part = ByteBuffer(capacity: 64)
            shape.append(to: &part)
            writer.appendVarint(UInt64(part.count))
            writer.append(part.bytes)
        }
    }

    /// Reads what `append` wrote; nil when it is something else.
    package init?(_ bytes: RawSpan) {
        var reader = WireReader(bytes)
        guard let overrides = FieldOverride.list(&reader), !overrides.contains(where: \.isAdaptive) else { return nil }
        fieldOverrides = overrides
        indexes = []
        while !reader.isAtEnd {
            guard let part = try? reader.lengthDelimited(), let shape = IndexShape(part) else { return nil }
            indexes.append(shape)
        }
    }
}
