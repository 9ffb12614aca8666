// From paths to references and queries.

import Basics
public import DocumentCoding
import DocumentModel

extension Firestore {
    /// The collection at a path, an odd number of segments.
    @discardableResult
    public func collection(_ collectionPath: String) -> CollectionReference {
        checkUsable()
        return CollectionReference(
            firestore: self,
            segments: enforcing { () throws(RuleViolation) in try PathRules.collection(collectionPath) })
    }

    /// The document at a path, an even number of segments.
    @discardableResult
    public func document(_ documentPath: String) -> DocumentReference {
        checkUsable()
        return reference(enforcing { () throws(RuleViolation) in try PathRules.document(documentPath) })
    }

    /// All collections of an id, wherever they stand.
    @discardableResult
    public func collectionGroup(_ collectionID: String) -> Query {
        checkUsable()
        let id = enforcing { () throws(RuleViolation) in try PathRules.collectionGroup(collectionID) }
        return Query(firestore: self, definition: QueryDescription(group: id))
    }

    /// The document at checked segments from the root.
    func reference(_ segments: [String]) -> DocumentReference { reference(name: resourceName(segments)) }

    /// The document of a resource name that the server or this library made.
    func reference(name: String) -> DocumentReference {
        guard let reference = DocumentReference(name: name, owner: self) else {
            preconditionFailure("not a document's resource name: \(name)")
        }
        return reference
    }

    /// The resource name of a path from the root.
    func resourceName(_ segments: [String]) -> String {
        var name = documentsRoot
        for segment in segments {
            name += "/"
            name += segment
        }
        return name
    }

    /// Refuses references that were made by another database object.
    func checkOwns(_ reference: DocumentReference) throws(RuleViolation) {
        if reference.isOwned(by: self) { return }
        try check(String(reference.databaseName), of: "Document reference")
        throw RuleViolation("Provided document reference is from a different Firestore instance.")
    }

    /// Refuses what belongs to another database.
    ///
    /// - Parameters:
    ///   - database: the resource name of its database.
    ///   - subject: what it is, as the beginning of the message.
    func check(_ database: String, of subject: String) throws(RuleViolation) {
        if database.hasSameUTF8(as: "\(databaseName)") { return }
        throw RuleViolation("\(subject) is for database \(database) but should be for database \(databaseName)")
    }
}

extension DocumentReference {
    /// The database object that the reference was made by. A reference without one is a programming error.
    public var firestore: Firestore {
        guard let firestore = owner as? Firestore else {
            programmingError("This document reference was not created by a Firestore instance.")
        }
        return firestore
    }

    /// The collection that holds the document.
    public var parent: CollectionReference {
        CollectionReference(firestore: firestore, segments: Array(pathSegments.dropLast()))
    }

    /// A collection below the document.
    @discardableResult
    public func collection(_ collectionPath: String) -> CollectionReference {
        CollectionReference(
            firestore: firestore,
            segments: enforcing { () throws(RuleViolation) in
                try PathRules.collection(collectionPath, below: pathSegments)
            })
    }

    var pathSegments: [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
    }
}
