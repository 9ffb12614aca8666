// Indexes and fields of the admin API as the store's definitions, both ways.

internal import Basics
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import Indexing

extension IndexShape {
    /// - Throws: `INVALID_ARGUMENT` for a message that is not an index of this server.
    init(_ message: AdminIndex, in group: AdminGroup) throws(RequestError) {
        guard let spansGroup = message.queryScope.spansGroup else {
            throw .invalidArgument("The query scope of an index must be COLLECTION or COLLECTION_GROUP.")
        }
        let fields = message.fields.flatMap { field in
            field.mode.modes.map { IndexMessage.Field(path: field.path, mode: $0.mode, dimension: $0.dimension) }
        }
        try self.init(
            IndexMessage(
                collectionGroup: group.collectionID, spansGroup: spansGroup, fields: fields,
                textLanguage: message.textLanguage))
    }

    /// The index with its name and state. The position of the document's name is explicit; in an index for searches it
    /// has none.
    func adminMessage(in database: DatabaseName, _ state: AdminIndex.State) -> AdminIndex {
        if let search { return search.adminMessage(of: self, in: database, state) }
        var fields = parts.map { AdminIndex.Field(path: "\($0.field)", mode: AdminIndex.Field.Mode($0.kind)) }
        fields.append(AdminIndex.Field(path: "__name__", mode: isNameDescending ? .descending : .ascending))
        if let vector {
            fields.append(
                AdminIndex.Field(path: "\(vector.field)", mode: .vector(Int32(clamping: vector.dimension))))
        }
        return AdminIndex(
            name: "\(AdminIndexName(self, in: database))", queryScope: AdminIndex.QueryScope(spansGroup: isGroup),
            fields: fields, state: state)
    }
}

extension IndexShape.SearchPart {
    fileprivate func adminMessage(
        of shape: IndexShape, in database: DatabaseName, _ state: AdminIndex.State
    ) -> AdminIndex {
        let fields =
            texts.map { AdminIndex.Field(path: "\($0)", mode: .search(text: true, geo: false)) }
            + points.map { AdminIndex.Field(path: "\($0)", mode: .search(text: false, geo: true)) }
        return AdminIndex(
            name: "\(AdminIndexName(shape, in: database))",
            queryScope: AdminIndex.QueryScope(spansGroup: shape.isGroup), fields: fields,
            state: state, textLanguage: texts.isEmpty ? "" : language.code)
    }
}

extension AdminIndex.State {
    init(_ progress: DocumentStore.IndexProgress) {
        switch progress {
        case .ready: self = .ready
        case .failed: self = .needsRepair
        case .building, .dropping, .waiting: self = .creating
        }
    }
}

extension AdminIndex.QueryScope {
    fileprivate init(spansGroup: Bool) { self = spansGroup ? .collectionGroup : .collection }

    /// Nil for a scope that this server does not have.
    fileprivate var spansGroup: Bool? {
        switch self {
        case .collection: false
        case .collectionGroup: true
        case .unspecified, .collectionRecursive: nil
        }
    }
}

extension AdminIndex.Field.Mode {
    fileprivate init(_ kind: IndexShape.Part.Kind) {
        switch kind {
        case .ascending: self = .ascending
        case .descending: self = .descending
        case .contains: self = .contains
        }
    }

    /// The modes in the messages of `hearth.admin.v1`, with the dimension of a vector. A field may be searched in two
    /// ways.
    fileprivate var modes: [(mode: IndexMode, dimension: Int32)] {
        switch self {
        case .unspecified, .search(text: false, geo: false): [(.unspecified, 0)]
        case .ascending: [(.ascending, 0)]
        case .descending: [(.descending, 0)]
        case .contains: [(.contains, 0)]
        case .vector(let dimension): [(.vector, dimension)]
        case .search(let text, let geo): (text ? [(.text, 0)] : []) + (geo ? [(.geo, 0)] : [])
        }
    }

    /// Nil for a mode that an index of a single field cannot have.
    fileprivate var kind: IndexShape.Part.Kind? {
        switch self {
        case .ascending: .ascending
        case .descending: .descending
        case .contains: .contains
        case .unspecified, .vector, .search: nil
        }
    }
}

extension FieldOverride.Modes {
    /// - Throws: `INVALID_ARGUMENT` for an index that is not one of this field alone.
    init(_ indexes: [AdminIndex], of field: AdminFieldName) throws(RequestError) {
        self = []
        for index in indexes {
            guard index.fields.count == 1, ["", "*", field.path].contains(index.fields[0].path),
                let spansGroup = index.queryScope.spansGroup, let kind = index.fields[0].mode.kind
            else {
                throw .invalidArgument(
                    "\(field): each index must have a query scope and one field, this one, with an order or CONTAINS.")
            }
            formUnion(kind.mode(isGroup: spansGroup))
        }
    }

    func adminMessages(of path: String, _ state: AdminIndex.State) -> [AdminIndex] {
        singleFieldIndexes.map { index in
            AdminIndex(
                queryScope: AdminIndex.QueryScope(spansGroup: index.isGroup),
                fields: [AdminIndex.Field(path: path, mode: AdminIndex.Field.Mode(index.kind))],
                state: state)
        }
    }
}
