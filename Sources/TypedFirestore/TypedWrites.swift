// Models in transactions and batches. A transaction runs with `Firestore.runTransaction`, whose block throws.

public import FirebaseFirestore

extension Transaction {
    /// The model as of the beginning of the transaction; `nil` if there is no such document. Blocks the calling thread.
    ///
    /// - Throws: what `getDocument(_:)` throws; a `DecodingError` if the document cannot be decoded as the model.
    public func get<Model>(_ document: TypedDocument<Model>) throws -> Model? { try snapshot(document)?.model }

    /// The document with its metadata; `nil` if there is none. Blocks the calling thread.
    public func snapshot<Model>(_ document: TypedDocument<Model>) throws -> TypedSnapshot<Model>? {
        let found = try getDocument(document.untyped)
        return found.exists ? TypedSnapshot(found) : nil
    }

    /// Replaces the document.
    @discardableResult
    public func set<Model>(_ model: Model, at document: TypedDocument<Model>) throws -> Transaction {
        try setData(from: model, forDocument: document.untyped)
    }

    /// Writes the fields of the model and leaves other fields of the document.
    @discardableResult
    public func merge<Model>(_ model: Model, at document: TypedDocument<Model>) throws -> Transaction {
        try setData(from: model, forDocument: document.untyped, merge: true)
    }

    /// Changes fields of the document, which must exist.
    ///
    /// - Throws: ``NoSuchField`` for a key path without a field, ``RepeatedField`` for two changes of a field,
    ///   `.invalidArgument` for changes that would be a programming error of `updateData(_:forDocument:)`.
    @discardableResult
    public func update<Model>(
        _ document: TypedDocument<Model>, _ changes: FieldChange<Model>...
    ) throws -> Transaction {
        let untyped = document.untyped
        return updateData(try FieldChange.fields(changes, of: untyped), forDocument: untyped)
    }

    /// Deletes the document, if there is one.
    @discardableResult
    public func delete<Model>(_ document: TypedDocument<Model>) -> Transaction { deleteDocument(document.untyped) }
}

extension WriteBatch {
    /// Replaces the document.
    @discardableResult
    public func set<Model>(_ model: Model, at document: TypedDocument<Model>) throws -> WriteBatch {
        try setData(from: model, forDocument: document.untyped)
    }

    /// Writes the fields of the model and leaves other fields of the document.
    @discardableResult
    public func merge<Model>(_ model: Model, at document: TypedDocument<Model>) throws -> WriteBatch {
        try setData(from: model, forDocument: document.untyped, merge: true)
    }

    /// Changes fields of the document, which must exist when the batch is committed.
    ///
    /// - Throws: ``NoSuchField`` for a key path without a field, ``RepeatedField`` for two changes of a field,
    ///   `.invalidArgument` for changes that would be a programming error of `updateData(_:forDocument:)`.
    @discardableResult
    public func update<Model>(
        _ document: TypedDocument<Model>, _ changes: FieldChange<Model>...
    ) throws -> WriteBatch {
        let untyped = document.untyped
        return updateData(try FieldChange.fields(changes, of: untyped), forDocument: untyped)
    }

    /// Deletes the document, if there is one.
    @discardableResult
    public func delete<Model>(_ document: TypedDocument<Model>) -> WriteBatch { deleteDocument(document.untyped) }
}
