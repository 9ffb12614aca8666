internal import Basics
internal import DocumentModel
package import DocumentStore
package import FirestoreMessages
internal import Indexing
internal import TextAnalysis

// Declarations of indexes as messages of `hearth.admin.v1`, both ways.

extension IndexDeclaration {
    /// - Throws: `INVALID_ARGUMENT` for an entry that is not an index or override. The store checks the rest.
    init(_ message: ApplyIndexesRequest) throws(RequestError) {
        self.init()
        for index in message.indexes { indexes.append(try IndexShape(index)) }
        for override in message.fieldOverrides { fieldOverrides.append(try FieldOverride(override)) }
    }

    /// The request that makes a database's declaration this one.
    func request(database: DatabaseName) -> ApplyIndexesRequest {
        ApplyIndexesRequest(
            database: "\(database)", indexes: indexes.map(\.message), fieldOverrides: fieldOverrides.map(\.message))
    }
}

extension IndexShape {
    private static let documentName = "__name__"

    init(_ message: IndexMessage) throws(RequestError) {
        var fields = message.fields[...]
        let group = message.collectionGroup
        self.init(collectionID: group, isGroup: message.spansGroup, parts: [])
        if fields.contains(where: { $0.mode == .text || $0.mode == .geo }) {
            search = try SearchPart(message)
            return
        }
        if let last = fields.last, last.mode == .vector {
            guard (1...Int32(Limits.vectorDimension)).contains(last.dimension) else {
                throw .invalidArgument("\(group).\(last.path): a vector has 1 to \(Limits.vectorDimension) dimensions.")
            }
            vector = VectorPart(field: try FieldPath(last.path), dimension: Int(last.dimension))
            fields.removeLast()
        }
        var isNameDescending: Bool?
        if let last = fields.last, last.path == Self.documentName {
            isNameDescending = last.mode == .descending
            fields.removeLast()
        }
        for field in fields {
            guard let kind = Part.Kind(field.mode), field.path != Self.documentName else {
                throw .invalidArgument("\(group).\(field.path): the mode is missing, or the field must come last.")
            }
            parts.append(Part(field: try FieldPath(field.path), kind: kind))
        }
        guard !parts.isEmpty || vector != nil else { throw .invalidArgument("An index of \(group) has no field.") }
        if let isNameDescending { reversesName = isNameDescending != (parts.last?.kind == .descending) }
    }

    var message: IndexMessage {
        if let search { return search.message(of: self) }
        var fields = parts.map { IndexMessage.Field(path: "\($0.field)", mode: $0.kind.mode) }
        if reversesName {
            let isDescending = parts.last?.kind != .descending
            fields.append(IndexMessage.Field(path: Self.documentName, mode: isDescending ? .descending : .ascending))
        }
        if let vector {
            fields.append(
                IndexMessage.Field(path: "\(vector.field)", mode: .vector, dimension: Int32(clamping: vector.dimension))
            )
        }
        return IndexMessage(collectionGroup: collectionID, spansGroup: isGroup, fields: fields)
    }
}

extension IndexShape.SearchPart {
    fileprivate init(_ message: IndexMessage) throws(RequestError) {
        self.init(
            texts: [],
            language: message.textLanguage.isEmpty ? .english : try TextLanguage(tag: message.textLanguage))
        for field in message.fields {
            switch field.mode {
            case .text: texts.append(try FieldPath(field.path))
            case .geo: points.append(try FieldPath(field.path))
            case .unspecified, .ascending, .descending, .contains, .vector:
                throw .invalidArgument(
                    "\(message.collectionGroup).\(field.path): all fields of an index for searches are texts or points."
                )
            }
        }
    }

    fileprivate func message(of shape: IndexShape) -> IndexMessage {
        IndexMessage(
            collectionGroup: shape.collectionID, spansGroup: shape.isGroup,
            fields: texts.map { IndexMessage.Field(path: "\($0)", mode: .text) }
                + points.map { IndexMessage.Field(path: "\($0)", mode: .geo) },
            textLanguage: language.code)
    }
}

extension IndexShape.Part.Kind {
    fileprivate init?(_ mode: IndexMode) {
        switch mode {
        case .ascending: self = .ascending
        case .descending: self = .descending
        case .contains: self = .contains
        case .unspecified, .vector, .text, .geo: return nil
        }
    }

    fileprivate var mode: IndexMode {
        switch self {
        case .ascending: .ascending
        case .descending: .descending
        case .contains: .contains
        }
    }
}

extension FieldOverride {
    private static let allFields = "*"

    init(_ message: FieldOverrideMessage) throws(RequestError) {
        let field = message.fieldPath == Self.allFields ? nil : try FieldPath(message.fieldPath)
        var modes: Modes?
        for index in message.indexes ?? [] {
            guard let kind = IndexShape.Part.Kind(index.mode) else {
                throw .invalidArgument(
                    "\(message.collectionGroup).\(message.fieldPath): the mode of an index is missing.")
            }
            modes = (modes ?? []).union(kind.mode(isGroup: index.spansGroup))
        }
        if message.indexes != nil { modes = modes ?? [] }
        self.init(collectionID: message.collectionGroup, field: field, indexes: modes, expires: message.ttl)
    }

    var message: FieldOverrideMessage {
        FieldOverrideMessage(
            collectionGroup: collectionID, fieldPath: field.map { "\($0)" } ?? Self.allFields,
            indexes: indexes.map { modes in
                modes.singleFieldIndexes.map {
                    FieldOverrideMessage.SingleFieldIndex(spansGroup: $0.isGroup, mode: $0.kind.mode)
                }
            },
            ttl: expires)
    }
}

extension ListIndexesResponse.Entry {
    package init(_ index: ListedIndex) {
        self.init(
            state: index.state.rawValue, json: index.json, entries: Int64(index.size?.entries ?? 0),
            bytes: Int64(index.size?.bytes ?? 0), failure: index.failure ?? "")
    }
}
