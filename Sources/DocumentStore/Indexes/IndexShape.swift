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

    /// The last segment of the paths of its collections.
    package var collectionID: String
    /// Entries of all these collections lie together; otherwise each collection's by themselves.
    package var isGroup: Bool
    package var parts: [Part]

    package init(collectionID: String, isGroup: Bool, parts: [Part]) {
        self.collectionID = collectionID
        self.isGroup = isGroup
        self.parts = parts
    }

    /// The fields as explain shows them, the name with the direction of the last one.
    package var properties: String {
        let last = parts.last?.kind == .descending ? "DESC" : "ASC"
        return "(" + parts.map { "\($0.field) \($0.kind.word)" }.joined(separator: ", ") + ", __name__ \(last))"
    }

    /// The index as an entry of `firestore.indexes.json`: of `indexes`, or of `fieldOverrides` for a single field, which then names
    /// the indexes that the field has anyway too.
    package var json: String {
        if parts.count == 1 {
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
        let fields = parts.map { "{\"fieldPath\":\(JSONText.quoted("\($0.field)")),\($0.kind.json)}" }
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
    /// One for each different alternative of the filter: the fields held to one value, an array, then the orders. Equalities alone
    /// are merged from single fields. Source: semantics page, section 5, "Indexes in the cloud".
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
            let parts = parts(for: disjunct, orders: plan.matcher.order.components)
            if parts.isEmpty || (parts.count == 1 && !isGroup) { continue }
            let shape = IndexShape(
                collectionID: String(decoding: collectionID, as: UTF8.self), isGroup: isGroup, parts: parts)
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
        guard collectionID == other.collectionID, isGroup == other.isGroup, parts.count == other.parts.count else {
            return false
        }
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

    private static func parts(for disjunct: Disjunct, orders: [Order]) -> [Part] {
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
        if ordered.isEmpty { return Array((equal + contains).prefix(1)) }
        return equal + contains
            + ordered.map { Part(field: $0.field, kind: $0.direction == .ascending ? .ascending : .descending) }
    }
}
