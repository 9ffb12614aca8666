// Indexes and fields of the admin API as the store's definitions, both ways.

internal import Basics
internal import DocumentModel
internal import FirestoreMessages
internal import Indexing

extension IndexShape {
    /// - Throws: `INVALID_ARGUMENT` for a message that is not an index of this server.
    init(_ message: AdminIndex, in group: AdminGroup) throws(RequestError) {
        let spansGroup: Bool
        switch message.queryScope {
        case .collection: spansGroup = false
        case .collectionGroup: spansGroup = true
        case .unspecified, .collectionRecursive:
            throw .invalidArgument("The query scope of an index must be COLLECTION or COLLECTION_GROUP.")
        }
        let fields = message.fields.map { field in
            switch field.mode {
            case .unspecified: IndexMessage.Field(path: field.path, mode: .unspecified)
            case .ascending: IndexMessage.Field(path: field.path, mode: .ascending)
            case .descending: IndexMessage.Field(path: field.path, mode: .descending)
            case .contains: IndexMessage.Field(path: field.path, mode: .contains)
            case .vector(let dimension): IndexMessage.Field(path: field.path, mode: .vector, dimension: dimension)
            }
        }
        try self.init(IndexMessage(collectionGroup: group.collectionID, spansGroup: spansGroup, fields: fields))
    }

    /// The index with its name and state. The position of the document's name is explicit.
    func adminMessage(in database: DatabaseName, isReady: Bool) -> AdminIndex {
        var fields = parts.map { part in
            let mode: AdminIndex.Field.Mode =
                switch part.kind {
                case .ascending: .ascending
                case .descending: .descending
                case .contains: .contains
                }
            return AdminIndex.Field(path: "\(part.field)", mode: mode)
        }
        fields.append(AdminIndex.Field(path: "__name__", mode: isNameDescending ? .descending : .ascending))
        if let vector {
            fields.append(
                AdminIndex.Field(path: "\(vector.field)", mode: .vector(Int32(clamping: vector.dimension))))
        }
        return AdminIndex(
            name: "\(AdminIndexName(self, in: database))", queryScope: isGroup ? .collectionGroup : .collection,
            fields: fields, state: isReady ? .ready : .creating)
    }
}

extension FieldOverride.Modes {
    /// The indexes of a single field, one by one.
    private static let members: [(modes: Self, scope: AdminIndex.QueryScope, mode: AdminIndex.Field.Mode)] = [
        (.ascending, .collection, .ascending), (.descending, .collection, .descending),
        (.contains, .collection, .contains), (.groupAscending, .collectionGroup, .ascending),
        (.groupDescending, .collectionGroup, .descending), (.groupContains, .collectionGroup, .contains),
    ]

    /// - Throws: `INVALID_ARGUMENT` for an index that is not one of this field alone.
    init(_ indexes: [AdminIndex], of field: AdminFieldName) throws(RequestError) {
        self = []
        for index in indexes {
            guard index.fields.count == 1, ["", "*", field.path].contains(index.fields[0].path),
                let member = Self.members.first(where: {
                    $0.scope == index.queryScope && $0.mode == index.fields[0].mode
                })
            else {
                throw .invalidArgument(
                    "\(field): each index must have a query scope and one field, this one, with an order or CONTAINS.")
            }
            formUnion(member.modes)
        }
    }

    func adminMessages(of path: String, isSettled: Bool) -> [AdminIndex] {
        Self.members.filter { contains($0.modes) }.map { member in
            AdminIndex(
                queryScope: member.scope, fields: [AdminIndex.Field(path: path, mode: member.mode)],
                state: isSettled ? .ready : .creating)
        }
    }
}
