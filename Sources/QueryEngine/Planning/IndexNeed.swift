// What the cloud needs to answer a query: explain's advice, and what strict mode asks for.
//
//     where a == 1, b == 2             (a), (b), merged: kept by themselves in a collection
//     where a == 1 order by b          (a, b)
//     where a == 1, c == 2 order by b  (a, c, b), or (a, b) and (c, b) merged
//     order by a, __name__ desc        (a ASC, __name__ DESC)
//
// Source: semantics page, section 5, "Indexes in the cloud".

import Basics
import DocumentModel
internal import Indexing

/// The index that one alternative of a query's filter needs.
struct IndexNeed {
    private typealias Part = IndexShape.Part

    private let collectionID: String
    private let isGroup: Bool
    /// Fields held to one value, and an array that contains one.
    private let held: [IndexShape.Part]
    private let ordered: [IndexShape.Part]
    /// The order's name goes against its last field.
    private let reversesName: Bool
    private let vector: IndexShape.VectorPart?

    /// The needs of all alternatives.
    static func all(of plan: QueryPlan) -> [IndexNeed] {
        switch plan.matcher.scope {
        case .collection(let path):
            let id = String(repairingUTF8: RelativePath.lastSegment(path.byteSpan))
            return Disjunct.all(of: plan.matcher.filter).map { IndexNeed($0, of: plan, id, isGroup: false) }
        case .descendants(let parent, let id?) where parent.isEmpty:
            let id = String(decoding: id, as: UTF8.self)
            return Disjunct.all(of: plan.matcher.filter).map { IndexNeed($0, of: plan, id, isGroup: true) }
        // Nothing but names can be asked for.
        case .children, .descendants: return []
        }
    }

    private init(_ disjunct: Disjunct, of plan: QueryPlan, _ collectionID: String, isGroup: Bool) {
        self.collectionID = collectionID
        self.isGroup = isGroup
        var held: [Part] = []
        for test in disjunct.fieldTests where test.isEquality {
            let part = Part(field: test.path, kind: test.condition.isOfValue ? .ascending : .contains)
            if !held.contains(part) { held.append(part) }
        }
        self.held = held.filter { $0.kind != .contains } + held.filter { $0.kind == .contains }
        let orders = plan.matcher.order.components.filter { order in
            !held.contains { $0.field == order.field && $0.kind != .contains }
        }
        let fields = orders.filter { !$0.field.isDocumentName }
        ordered = fields.map { Part(field: $0.field, kind: $0.direction == .ascending ? .ascending : .descending) }
        let name = orders.first(where: \.field.isDocumentName)
        reversesName = !fields.isEmpty && name != nil && name?.direction != fields.last?.direction && !plan.isUnordered
        vector = plan.nearest?.part
    }

    /// The index that would do alone; nil if none has to be declared, were all single fields of collections indexed.
    var shape: IndexShape? {
        // Equalities alone are merged; a group's need a separate index each, of which this is the first.
        let parts = ordered.isEmpty && vector == nil ? Array(held.prefix(1)) : held + ordered
        if vector == nil, parts.isEmpty || (parts.count == 1 && !isGroup && !reversesName) { return nil }
        return IndexShape(
            collectionID: collectionID, isGroup: isGroup, parts: parts, vector: vector, reversesName: reversesName)
    }

    // MARK: Strict mode

    /// Refuses a query that needs an index which is not there, as the cloud does.
    ///
    /// - Parameters:
    ///   - declared: the database's declared indexes.
    ///   - overrides: those of the collection's group.
    /// - Throws: `FAILED_PRECONDITION` with the entry of `firestore.indexes.json` that is missing.
    static func requireAll(
        of plan: QueryPlan, among declared: [IndexShape], _ overrides: [FieldOverride]
    ) throws(RequestError) {
        for need in all(of: plan) {
            guard let missing = need.missing(among: declared, overrides) else { continue }
            throw RequestError(.failedPrecondition, missing)
        }
    }

    /// What the cloud would say of the index that is not there; nil if all are.
    private func missing(among declared: [IndexShape], _ overrides: [FieldOverride]) -> String? {
        if vector != nil {
            guard let shape, !declared.contains(where: { $0.serves(shape) }) else { return nil }
            return "The query requires an index. Add this to firestore.indexes.json: \(shape.json)"
        }
        // Single fields go by their overrides; what `ttl` keeps beside them is not for queries.
        let candidates =
            declared.filter { index in
                index.collectionID == collectionID && index.isGroup == isGroup && index.vector == nil
                    && !(index.parts.count == 1 && overrides.contains { $0.field == index.parts[0].field })
            } + singleFields(overrides)
        var uncovered = held
        var isOrderMet = ordered.isEmpty
        for index in candidates {
            guard let covered = covered(by: index) else { continue }
            isOrderMet = true
            uncovered.removeAll { covered.contains($0) }
        }
        if isOrderMet, uncovered.isEmpty { return nil }
        if ordered.isEmpty, let part = uncovered.first { return singleMessage(part, overrides) }
        if held.isEmpty, ordered.count == 1, !reversesName { return singleMessage(ordered[0], overrides) }
        guard let shape else { return nil }
        return "The query requires an index. Add this to firestore.indexes.json: \(shape.json)"
    }

    /// The indexes of single fields that the query could use.
    private func singleFields(_ overrides: [FieldOverride]) -> [IndexShape] {
        var shapes: [IndexShape] = []
        for field in Set((held + ordered).map(\.field)) {
            let modes = FieldOverride.modes(of: field.utf8Segments, by: overrides)
            for kind in [Part.Kind.ascending, .descending, .contains] where modes.contains(kind.mode(isGroup: isGroup))
            {
                shapes.append(
                    IndexShape(collectionID: collectionID, isGroup: isGroup, parts: [Part(field: field, kind: kind)]))
            }
        }
        return shapes
    }

    /// The fields held to one value that an index begins with, if it continues in the order of the query, or backwards;
    /// else nil.
    private func covered(by index: IndexShape) -> [IndexShape.Part]? {
        let heldCount = index.parts.count - ordered.count
        guard heldCount >= 0, !ordered.isEmpty || !held.isEmpty else { return nil }
        let end = Array(index.parts.suffix(ordered.count))
        // Single fields have a separate index for each direction.
        let isReversible = index.parts.count > 1
        guard end == ordered || isReversible && end == ordered.map(\.reversed) else { return nil }
        if !ordered.isEmpty, index.reversesName != reversesName { return nil }
        var covered: [Part] = []
        for part in index.parts.prefix(heldCount) {
            let match = held.first { $0.field == part.field && ($0.kind == .contains) == (part.kind == .contains) }
            guard let match else { return nil }
            covered.append(match)
        }
        return covered
    }

    private func singleMessage(_ part: IndexShape.Part, _ overrides: [FieldOverride]) -> String {
        let modes = FieldOverride.modes(of: part.field.utf8Segments, by: overrides)
        let entry = FieldOverride(
            collectionID: collectionID, field: part.field, indexes: modes.union(part.kind.mode(isGroup: isGroup)),
            expires: overrides.contains { $0.field == part.field && $0.expires })
        let scope = isGroup ? "COLLECTION_GROUP" : "COLLECTION"
        return
            "The query requires a \(scope)_\(part.kind.word) index for collection \(collectionID) "
            + "and field \(part.field). "
            + "Add this to firestore.indexes.json: \(entry.json)"
    }
}

extension IndexShape {
    /// Whether the index does what another one would: it may name the fields held to one value in another order, and
    /// be walked backwards.
    fileprivate func serves(_ other: IndexShape) -> Bool {
        guard collectionID == other.collectionID, isGroup == other.isGroup, parts.count == other.parts.count,
            vector == other.vector, reversesName == other.reversesName
        else { return false }
        return parts == other.parts.map(\.reversed)
            || parts.last == other.parts.last && Set(parts) == Set(other.parts)
    }
}

extension IndexShape.Part {
    /// What the part is in an index that is walked backwards.
    fileprivate var reversed: IndexShape.Part {
        let kind: Kind =
            switch kind {
            case .ascending: .descending
            case .descending: .ascending
            case .contains: .contains
            }
        return IndexShape.Part(field: field, kind: kind)
    }
}
