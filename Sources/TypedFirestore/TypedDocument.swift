public import FirebaseFirestore

/// A document that is a model of one type.
public struct TypedDocument<Model: Codable & Sendable>: Sendable, Hashable {
    /// The document without its type.
    public let untyped: DocumentReference

    /// Gives a document its type.
    public init(_ document: DocumentReference) { untyped = document }

    /// The last segment of the path.
    public var id: String { untyped.documentID }
    /// The path from the root of the database.
    public var path: String { untyped.path }

    /// The model; `nil` if there is no such document.
    ///
    /// - Throws: a `DecodingError` if the document cannot be decoded as the model.
    public func get() async throws -> Model? { try await snapshot()?.model }

    /// The document with its metadata; `nil` if there is none.
    public func snapshot() async throws -> TypedSnapshot<Model>? {
        let found = try await untyped.getDocument()
        return found.exists ? TypedSnapshot(found) : nil
    }

    /// Replaces the document, and returns after the acknowledgement.
    public func set(_ model: Model) async throws {
        let batch = untyped.firestore.batch()
        try batch.setData(from: model, forDocument: untyped)
        try await batch.commit()
    }

    /// Writes the fields of the model and leaves other fields of the document.
    public func merge(_ model: Model) async throws {
        let batch = untyped.firestore.batch()
        try batch.setData(from: model, forDocument: untyped, merge: true)
        try await batch.commit()
    }

    /// Changes fields of the document, which must exist.
    ///
    /// - Throws: `FirestoreErrorCode.notFound` if the document is missing, ``NoSuchField`` for a key path
    ///   without a field, ``RepeatedField`` for two changes of a field, `.invalidArgument` for changes that would be a
    ///   programming error of `updateData(_:)`: one inside another, an array in an array, the id of the document.
    public func update(_ changes: FieldChange<Model>...) async throws {
        try await untyped.updateData(try FieldChange.fields(changes, of: untyped))
    }

    /// Deletes the document, if there is one.
    public func delete() async throws { try await untyped.delete() }

    /// The document, then the document after every change; `nil` while there is none.
    public var snapshots: TypedSnapshots<TypedSnapshot<Model>?> {
        TypedSnapshots { [untyped] receive in
            untyped.addSnapshotListener { snapshot, error in
                receive(
                    snapshot.map { .success($0.exists ? TypedSnapshot($0) : nil) } ?? error.map { .failure($0) })
            }
        }
    }
}

/// An update that changes a field more than once.
public struct RepeatedField: Error, CustomStringConvertible, Sendable {
    /// The field.
    public let description: String
}

/// A change of one field.
public struct FieldChange<Model: Codable & Sendable>: Sendable {
    private let field: @Sendable (Firestore) throws -> (FieldPath, Any)

    private init<Value: Encodable & SendableMetatype>(
        _ keyPath: any KeyPath<Model, Value> & Sendable, _ value: @escaping @Sendable () throws -> Any
    ) {
        field = { (try FieldPaths.find(keyPath, on: $0), try value()) }
    }

    /// Gives the field a value.
    public static func set<Value: Encodable & Sendable>(
        _ keyPath: any KeyPath<Model, Value> & Sendable, to value: Value
    ) -> Self {
        Self(keyPath) { try TypedOperand.encode(value) }
    }

    /// Removes the field.
    public static func remove<Value: Encodable & SendableMetatype>(_ keyPath: any KeyPath<Model, Value?> & Sendable)
        -> Self
    {
        Self(keyPath) { FieldValue.delete() }
    }

    /// Adds to a number.
    public static func increment<Number: FixedWidthInteger & Encodable & SendableMetatype>(
        _ keyPath: any KeyPath<Model, Number> & Sendable, by amount: Int64
    ) -> Self {
        Self(keyPath) { FieldValue.increment(amount) }
    }

    /// Adds to a number.
    public static func increment(_ keyPath: any KeyPath<Model, Double> & Sendable, by amount: Double) -> Self {
        Self(keyPath) { FieldValue.increment(amount) }
    }

    /// Adds the elements that the array does not have.
    public static func union<Element: Encodable & Sendable>(
        _ keyPath: any KeyPath<Model, [Element]> & Sendable, with elements: [Element]
    ) -> Self {
        Self(keyPath) { FieldValue.arrayUnion(try elements.map(TypedOperand.encode)) }
    }

    /// Removes elements from the array.
    public static func subtract<Element: Encodable & Sendable>(
        _ elements: [Element], from keyPath: any KeyPath<Model, [Element]> & Sendable
    ) -> Self {
        Self(keyPath) { FieldValue.arrayRemove(try elements.map(TypedOperand.encode)) }
    }

    /// Gives the field the time of the commit.
    public static func setToCommitTime<Value: Encodable & SendableMetatype>(
        _ keyPath: any KeyPath<Model, Value> & Sendable
    ) -> Self {
        Self(keyPath) { FieldValue.serverTimestamp() }
    }

    static func fields(_ changes: [Self], of document: DocumentReference) throws -> [AnyHashable: Any] {
        let fields = try changes.reduce(into: [:] as [AnyHashable: Any]) { fields, change in
            let (path, value) = try change.field(document.firestore)
            if fields.updateValue(value, forKey: path) != nil {
                throw RepeatedField(description: "\(path) is changed twice.")
            }
        }
        try document.checkUpdate(fields)
        return fields
    }
}
