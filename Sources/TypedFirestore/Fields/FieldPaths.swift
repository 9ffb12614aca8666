public import FirebaseFirestore
import Synchronization

/// A model that gives the names of its fields itself, for types whose names cannot be found by decoding.
///
/// ```swift
/// extension Ticket: FieldNaming {
///     static func fieldPath(of keyPath: PartialKeyPath<Ticket>) -> FieldPath? {
///         keyPath == \Ticket.state ? FieldPath(["state"]) : nil
///     }
/// }
/// ```
public protocol FieldNaming {
    /// The path of the field that a property is stored in; `nil` if it is to be found by decoding.
    static func fieldPath(of keyPath: PartialKeyPath<Self>) -> FieldPath?
}

/// A key path that names no field of the stored document. The read or write that needed it throws it.
public struct NoSuchField: Error, CustomStringConvertible, Sendable {
    /// The model, the key path, and the reason.
    public let description: String
}

/// The fields that key paths read, found once for each key path. Thread-safe.
enum FieldPaths {
    private struct Key: Hashable, @unchecked Sendable {
        // Unchecked: a key path is immutable; those of models have no subscripts with arguments.
        let keyPath: AnyKeyPath
    }
    private static let known = Mutex<[Key: Result<FieldPath, NoSuchField>]>([:])

    /// The field that a key path reads.
    static func find<Model: Codable, Value: Encodable>(
        _ keyPath: KeyPath<Model, Value>, on firestore: Firestore
    ) throws(NoSuchField) -> FieldPath {
        if let known = known.withLock({ $0[Key(keyPath: keyPath)] }) { return try known.get() }
        let found = Result { () throws(NoSuchField) in try search(keyPath, on: firestore) }
        known.withLock { $0[Key(keyPath: keyPath)] = found }
        return try found.get()
    }

    private static func search<Model: Codable, Value: Encodable>(
        _ keyPath: KeyPath<Model, Value>, on firestore: Firestore
    ) throws(NoSuchField) -> FieldPath {
        if let naming = Model.self as? any FieldNaming.Type, let path = named(keyPath, by: naming) { return path }
        func failure(_ reason: String) -> NoSuchField {
            NoSuchField(description: "\(keyPath) of \(Model.self) names no field: \(reason)")
        }
        do {
            let base = FieldProbe(varying: nil, on: firestore)
            let first = FieldProbe.bytes(of: try base.make(Model.self)[keyPath: keyPath])
            let followed = try base.leaves.indices.filter { leaf in
                let probe = FieldProbe(varying: leaf, on: firestore)
                return FieldProbe.bytes(of: try probe.make(Model.self)[keyPath: keyPath]) != first
            }
            guard let leaf = followed.first.map({ base.leaves[$0] }) else {
                throw failure("it does not depend on one.")
            }
            if followed.count == 1, leaf.isDocumentID { return .documentID() }
            let common = followed.dropFirst().reduce(leaf.path) { path, next in
                Array(zip(path, base.leaves[next].path).prefix { $0 == $1 }.map(\.0))
            }
            let wanted = ObjectIdentifier((Value.self as? any OptionalValue.Type)?.wrapped ?? Value.self)
            let lengths = common.isEmpty ? [] : Array(1...common.count)
            guard
                let length = lengths.first(where: { base.types[Array(common.prefix($0))]?.contains(wanted) ?? false })
            else { throw failure("no field has its type.") }
            // A computed property that changes the value of a field is not that field.
            if length == leaf.path.count, let bytes = leaf.bytes, bytes != first {
                throw failure("it is computed.")
            }
            return FieldPath(Array(common.prefix(length)))
        } catch let error as NoSuchField {
            throw error
        } catch {
            throw failure(
                """
                the type cannot be decoded from made-up values. Make enumerations CaseIterable, or conform to \
                FieldNaming. (\(error))
                """)
        }
    }

    private static func named<Naming: FieldNaming>(_ keyPath: AnyKeyPath, by type: Naming.Type) -> FieldPath? {
        (keyPath as? PartialKeyPath<Naming>).flatMap { type.fieldPath(of: $0) }
    }
}

/// An optional, for its wrapped type.
private protocol OptionalValue {
    static var wrapped: any Any.Type { get }
}

extension Optional: OptionalValue {
    static var wrapped: any Any.Type { Wrapped.self }
}
