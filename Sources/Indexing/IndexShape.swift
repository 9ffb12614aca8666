// The shape of an index over several fields, or over one field of a collection group, in the words of
// `firestore.indexes.json`.

internal import Basics
package import DocumentModel

/// What an index holds of which collections.
package struct IndexShape: Sendable, Hashable {
    /// One field of the index.
    package struct Part: Sendable, Hashable {
        /// What the entries have of the field, with the byte that stands for it on disk.
        package enum Kind: UInt8, Sendable {
            case ascending = 1
            case descending = 2
            /// An entry for each element of an array.
            case contains = 3
        }

        package var field: FieldPath
        package var kind: Kind

        package init(field: FieldPath, kind: Kind) {
            self.field = field
            self.kind = kind
        }
    }

    /// A vector that documents must have: what an index for nearest neighbours ends with.
    package struct VectorPart: Sendable, Hashable {
        package var field: FieldPath
        /// Elements of the vector, 1 ... 2,048.
        package var dimension: Int

        package init(field: FieldPath, dimension: Int) {
            self.field = field
            self.dimension = dimension
        }

        /// The bytes of the vector's elements, as `VectorBytes` has them; nil if a document has no vector of the
        /// dimension there.
        @_lifetime(copy fields)
        package func elementBytes(in fields: RawSpan) -> RawSpan? {
            guard let value = DocumentBytes.value(at: field, in: fields), let wire = WireValue(value),
                wire.typeClass == .vector
            else { return nil }
            let elements = VectorBytes.elementBytes(mapEntries: wire.payload)
            return elements.byteCount == dimension * VectorBytes.bytesPerElement ? elements : nil
        }
    }

    /// The last segment of the paths of its collections.
    package var collectionID: String { collection.string }
    /// The same, which is compared by its bytes.
    let collection: UTF8Text
    /// Entries of all these collections lie together; otherwise each collection's by themselves.
    package var isGroup: Bool
    /// Empty only in an index that has a vector or is for searches.
    package var parts: [Part]
    /// Only documents with this vector have entries. The vector itself is not in them: searches are exact and measure
    /// what the document holds.
    package var vector: VectorPart?
    /// Names go against the last field; otherwise they go its way.
    package var reversesName: Bool
    /// The fields of an index for searches, which has no parts and no vector.
    package var search: SearchPart?

    package init(
        collectionID: String, isGroup: Bool, parts: [Part], vector: VectorPart? = nil, reversesName: Bool = false,
        search: SearchPart? = nil
    ) {
        collection = UTF8Text(collectionID)
        self.isGroup = isGroup
        self.parts = parts
        self.vector = vector
        self.reversesName = reversesName
        self.search = search
    }

    /// Whether entries with equal values are in the descending order of names.
    package var isNameDescending: Bool { (parts.last?.kind == .descending) != reversesName }

    /// Whether it has an entry for each element of an array.
    package var hasElements: Bool { parts.contains { $0.kind == .contains } }

    /// The entries that a document of its collections has. Not for an index for searches.
    func entryCount(of fields: RawSpan) -> Int {
        if let vector, vector.elementBytes(in: fields) == nil { return 0 }
        var count = 1
        for part in parts {
            guard let value = DocumentBytes.value(at: part.field, in: fields) else { return 0 }
            if part.kind != .contains { continue }
            count = 0
            guard let wire = WireValue(value), var elements = wire.elements else { return 0 }
            while elements.next() != nil { count += 1 }
        }
        return count
    }

    /// The fields as explain shows them, a vector at the end.
    package var properties: String {
        if let search { return "(\(search.words.joined(separator: ", "))) \(search.language.code)" }
        var words = parts.map { "\($0.field) \($0.kind.word)" } + ["__name__ \(isNameDescending ? "DESC" : "ASC")"]
        if let vector { words.append("\(vector.field) VECTOR<\(vector.dimension)>") }
        return "(" + words.joined(separator: ", ") + ")"
    }

    /// The first field, or the vector's if there is no other.
    package var firstField: FieldPath {
        guard let field = parts.first?.field ?? vector?.field ?? search?.texts.first ?? search?.points.first
        else { preconditionFailure("An index has a field.") }
        return field
    }

    /// The index as an entry of `firestore.indexes.json`: of `indexes`, or of `fieldOverrides` for a single field,
    /// which then names the indexes that the field has anyway too.
    package var json: String {
        if parts.count == 1, vector == nil, !reversesName {
            let modes = FieldOverride.Modes.automatic.union(parts[0].kind.mode(isGroup: isGroup))
            return FieldOverride(collectionID: collectionID, field: parts[0].field, indexes: modes).json
        }
        let scope = isGroup ? "COLLECTION_GROUP" : "COLLECTION"
        if let search {
            return "{\"collectionGroup\":\(JSONText.quoted(collectionID)),\"queryScope\":\"\(scope)\","
                + "\"fields\":[\(search.jsonFields.joined(separator: ","))],"
                + "\"searchIndexOptions\":{\"textLanguage\":\"\(search.language.code)\"}}"
        }
        var fields = parts.map { "{\"fieldPath\":\(JSONText.quoted("\($0.field)")),\($0.kind.json)}" }
        if reversesName {
            let kind = isNameDescending ? Part.Kind.descending : .ascending
            fields.append("{\"fieldPath\":\"__name__\",\(kind.json)}")
        }
        if let vector {
            let configuration = "{\"dimension\":\(vector.dimension),\"flat\":{}}"
            fields.append(
                "{\"fieldPath\":\(JSONText.quoted("\(vector.field)")),\"vectorConfig\":\(configuration)}")
        }
        return "{\"collectionGroup\":\(JSONText.quoted(collectionID)),\"queryScope\":\"\(scope)\","
            + "\"fields\":[\(fields.joined(separator: ","))]}"
    }
}

extension IndexShape.Part.Kind {
    /// The word for it in `firestore.indexes.json`.
    package var word: String {
        switch self {
        case .ascending: "ASC"
        case .descending: "DESC"
        case .contains: "CONTAINS"
        }
    }

    /// What the kind is called in an override of a single field.
    package func mode(isGroup: Bool) -> FieldOverride.Modes {
        switch self {
        case .ascending: isGroup ? .groupAscending : .ascending
        case .descending: isGroup ? .groupDescending : .descending
        case .contains: isGroup ? .groupContains : .contains
        }
    }

    var json: String {
        switch self {
        case .ascending: "\"order\":\"ASCENDING\""
        case .descending: "\"order\":\"DESCENDING\""
        case .contains: "\"arrayConfig\":\"CONTAINS\""
        }
    }
}
