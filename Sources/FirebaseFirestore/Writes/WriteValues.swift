// From what programs hand over to the parts of a write.

import DocumentCoding
import Foundation

/// Encodes the data of writes. Data given as `Any` that cannot be written is a programming error; values that cannot be
/// encoded throw.
enum WriteValues {
    static func set(
        _ data: [String: Any], for document: DocumentReference, merge: Bool = false
    ) throws(RuleViolation) -> DocumentWriteData {
        try checked { () throws(InvalidUserData) in
            merge
                ? try DocumentFields.merge(data, database: document.databaseName)
                : try DocumentFields.set(data, database: document.databaseName)
        }
    }

    static func set(
        _ data: [String: Any], for document: DocumentReference, mergeFields: [Any]
    ) throws(RuleViolation) -> DocumentWriteData {
        let paths = try fieldPaths(mergeFields)
        return try checked { () throws(InvalidUserData) in
            try DocumentFields.merge(data, fields: paths, database: document.databaseName)
        }
    }

    static func update(
        _ fields: [AnyHashable: Any], for document: DocumentReference
    ) throws(RuleViolation) -> DocumentWriteData {
        try checked { () throws(InvalidUserData) in
            try DocumentFields.update(fields, database: document.databaseName)
        }
    }

    static func set<T: Encodable>(
        from value: T, for document: DocumentReference, merge: Bool = false, _ encoder: FirestoreEncoder
    ) throws -> DocumentWriteData {
        merge
            ? try encoder.mergeData(from: value, database: document.databaseName)
            : try encoder.setData(from: value, database: document.databaseName)
    }

    static func set<T: Encodable>(
        from value: T, for document: DocumentReference, mergeFields: [Any], _ encoder: FirestoreEncoder
    ) throws -> DocumentWriteData {
        let paths = enforcing { () throws(RuleViolation) in try fieldPaths(mergeFields) }
        do {
            return try encoder.mergeData(from: value, fields: paths, database: document.databaseName)
        } catch let invalid as InvalidUserData {
            // A path that the value says nothing about.
            programmingError(invalid.message)
        }
    }

    private static func fieldPaths(_ paths: [Any]) throws(RuleViolation) -> [FieldPath] {
        var result: [FieldPath] = []
        for path in paths {
            do {
                result.append(try FieldPath.reading(path))
            } catch {
                throw RuleViolation(error.description)
            }
        }
        return result
    }

    private static func checked<Result>(
        _ body: () throws(InvalidUserData) -> Result
    ) throws(RuleViolation) -> Result {
        do {
            return try body()
        } catch {
            throw RuleViolation(error.message)
        }
    }
}
