// The shape of an index over several fields, or over one field of a collection group, in the words of `firestore.indexes.json`.

package import DocumentModel

/// What an index holds of which collections.
package struct IndexShape: Sendable, Hashable {
    /// One field of the index.
    package struct Part: Sendable, Hashable {
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
        package var dimension: Int

        package init(field: FieldPath, dimension: Int) {
            self.field = field
            self.dimension = dimension
        }

        /// The bytes of the vector's elements, as `VectorBytes` has them; nil if a document has no vector of the dimension there.
        @_lifetime(copy fields)
        func elementBytes(in fields: RawSpan) -> RawSpan? {
            guard let value = DocumentBytes.value(at: field, in: fields), let wire = WireValue(value),
                wire.typeClass == .vector
            else { return nil }
            let elements = VectorBytes.elementBytes(mapEntries: wire.payload)
            return elements.byteCount == dimension * VectorKernel.elementBytes ? elements : nil
        }
    }

    /// The last segment of the paths of its collections.
    package var collectionID: String
    /// Entries of all these collections lie together; otherwise each collection's by themselves.
    package var isGroup: Bool
    /// Empty only in an index that has a vector.
    package var parts: [Part]
    /// Only documents with this vector have entries. The vector itself is not in them: searches are exact and measure what the
    /// document holds.
    package var vector: VectorPart?

    package init(collectionID: String, isGroup: Bool, parts: [Part], vector: VectorPart? = nil) {
        self.collectionID = collectionID
        self.isGroup = isGroup
        self.parts = parts
        self.vector = vector
    }

    /// The fields as explain shows them, the name with the direction of the last one, a vector at the end.
    package var properties: String {
        let last = parts.last?.kind == .descending ? "DESC" : "ASC"
        var words = parts.map { "\($0.field) \($0.kind.word)" } + ["__name__ \(last)"]
        if let vector { words.append("\(vector.field) VECTOR<\(vector.dimension)>") }
        return "(" + words.joined(separator: ", ") + ")"
    }

    /// The first field, or the vector's if there is no other.
    var firstField: FieldPath {
        guard let field = parts.first?.field ?? vector?.field else { preconditionFailure("An index has a field.") }
        return field
    }

    /// The index as an entry of `firestore.indexes.json`: of `indexes`, or of `fieldOverrides` for a single field, which then names
    /// the indexes that the field has anyway too.
    package var json: String {
        if parts.count == 1, vector == nil {
            let mode: FieldOverride.Modes =
                switch parts[0].kind {
                case .ascending: isGroup ? .groupAscending : .ascending
                case .descending: isGroup ? .groupDescending : .descending
                case .contains: isGroup ? .groupContains : .contains
                }
            return FieldOverride(
                collectionID: collectionID, field: parts[0].field, indexes: FieldOverride.Modes.automatic.union(mode)
            ).json
        }
        let scope = isGroup ? "COLLECTION_GROUP" : "COLLECTION"
        var fields = parts.map { "{\"fieldPath\":\(JSONText.quoted("\($0.field)")),\($0.kind.json)}" }
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
    var word: String {
        switch self {
        case .ascending: "ASC"
        case .descending: "DESC"
        case .contains: "CONTAINS"
        }
    }

    fileprivate var json: String {
        switch self {
        case .ascending: "\"order\":\"ASCENDING\""
        case .descending: "\"order\":\"DESCENDING\""
        case .contains: "\"arrayConfig\":\"CONTAINS\""
        }
    }
}

/// Text in JSON.
enum JSONText {
    static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}

// MARK: What a query asks for

extension IndexShape {
    /// The indexes that the cloud would ask for, those that it keeps by itself left out; none for a query that these serve.
    ///
    /// One for each different alternative of the filter: the fields held to one value, an array, then the orders, then the vector
    /// whose neighbours are wanted. Equalities alone are merged from single fields. Source: semantics page, section 5, "Indexes in the cloud".
    static func needed(by plan: QueryPlan) -> [IndexShape] {
        let collectionID: [UInt8]
        let isGroup: Bool
        switch plan.matcher.scope {
        case .collection(let path): (collectionID, isGroup) = ([UInt8](copying: RelativePath.lastSegment(path.byteSpan)), false)
        case .descendants(_, let id?): (collectionID, isGroup) = (id, true)
        case .descendants: return []
        }
        var shapes: [IndexShape] = []
        for disjunct in Disjunct.all(of: plan.matcher.filter) {
            let parts = parts(for: disjunct, orders: plan.matcher.order.components, isMerged: plan.nearest == nil)
            if plan.nearest == nil, parts.isEmpty || (parts.count == 1 && !isGroup) { continue }
            let shape = IndexShape(
                collectionID: String(decoding: collectionID, as: UTF8.self), isGroup: isGroup, parts: parts,
                vector: plan.nearest?.part)
            if !shapes.contains(shape) { shapes.append(shape) }
        }
        return shapes
    }

    /// Refuses a query one of whose indexes has not been declared, as the cloud does.
    ///
    /// - Throws: `FAILED_PRECONDITION` with the entry of `firestore.indexes.json` that is missing.
    static func requireAll(of plan: QueryPlan, among declared: [IndexShape]) throws(RequestError) {
        for shape in needed(by: plan) where !declared.contains(where: { $0.serves(shape) }) {
            throw RequestError(
                .failedPrecondition, "The query requires an index. Add this to firestore.indexes.json: \(shape.json)")
        }
    }

    /// Whether the index does what another one would: it may name the fields held to one value in another order, and be walked
    /// backwards.
    func serves(_ other: IndexShape) -> Bool {
        if self == other { return true }
        guard collectionID == other.collectionID, isGroup == other.isGroup, parts.count == other.parts.count,
            vector == other.vector
        else { return false }
        func flipped(_ part: Part) -> Part {
            let kind: Part.Kind =
                switch part.kind {
                case .ascending: .descending
                case .descending: .ascending
                case .contains: .contains
                }
            return Part(field: part.field, kind: kind)
        }
        return parts == other.parts.map(flipped)
            || parts.last == other.parts.last && Set(parts) == Set(other.parts)
    }

    private static func parts(for disjunct: Disjunct, orders: [Order], isMerged: Bool) -> [Part] {
        var equal: [Part] = []
        var contains: [Part] = []
        for test in disjunct.fieldTests where test.isEquality {
            let part = Part(field: test.path, kind: test.condition.isOfValue ? .ascending : .contains)
            if test.condition.isOfValue {
                if !equal.contains(part) { equal.append(part) }
            } else if contains.isEmpty {
                contains.append(part)
            }
        }
        let ordered = orders.filter { order in
            !order.field.isDocumentName && !equal.contains { $0.field == order.field }
        }
        // Equalities alone are merged; the group's need each an index of their own, of which this is the first.
        if ordered.isEmpty, isMerged { return Array((equal + contains).prefix(1)) }
        return equal + contains
            + ordered.map { Part(field: $0.field, kind: $0.direction == .ascending ? .ascending : .descending) }
    }
}
