// Owned names of documents and collections.

package import Basics

/// The name of a document: a database and a path of collection and document ids in turn.
///
/// Holds the path as UTF-8 bytes, by which it is compared and hashed: Swift's `String` would take names as equal that
/// Firestore keeps apart.
package struct DocumentPath: Sendable, Hashable {
    package let database: DatabaseName
    /// The path below `documents`, `users/jeff`; an even number of segments, at least two.
    package let utf8: [UInt8]

    /// Parses a full document name.
    package init(_ name: String, rules: NameRules = .stored) throws(RequestError) {
        self = try name.withUTF8Span { (bytes) throws(RequestError) in try DocumentPath(bytes, rules: rules) }
    }

    /// Parses and copies a full document name.
    package init(_ bytes: RawSpan, rules: NameRules = .stored) throws(RequestError) {
        let name = try ResourceNameView(resource: bytes, rules: rules)
        guard name.isDocument else { throw RequestError(.notADocument, name: bytes) }
        self.init(name)
    }

    /// A path below `documents` of a database: `users/jeff`.
    package init(database: DatabaseName, path: String, rules: NameRules = .stored) throws(RequestError) {
        try self.init("\(database.documentsRoot)/\(path)", rules: rules)
    }

    /// Copies a view of a document's name.
    package init(_ name: borrowing ResourceNameView) {
        precondition(name.isDocument, "DocumentPath made of a name that is not a document's")
        database = DatabaseName(of: name)
        utf8 = [UInt8](copying: name.pathBytes)
    }

    init(database: DatabaseName, checked utf8: [UInt8]) {
        self.database = database
        self.utf8 = utf8
    }

    /// The collection and document ids in turn.
    package var segments: [String] { PathBytes.segments(utf8) }

    /// The last segment.
    package var documentID: String { PathBytes.lastSegment(utf8) }

    /// The path below `documents`.
    package var path: String { String(decoding: utf8, as: UTF8.self) }

    /// The collection that holds the document.
    package var parent: CollectionPath { CollectionPath(database: database, checked: PathBytes.dropLast(utf8)) }

    /// A collection below this document.
    package func collection(_ id: String) throws(RequestError) -> CollectionPath {
        try CollectionPath("\(self)/\(id)")
    }
}

extension DocumentPath: CustomStringConvertible {
    /// The full name, `projects/…/databases/…/documents/users/jeff`.
    package var description: String { "\(database.documentsRoot)/\(path)" }
}

extension DocumentPath: Comparable {
    /// The order of `__name__`: database, then id by id, numeric ids first.
    package static func < (left: DocumentPath, right: DocumentPath) -> Bool {
        if left.database != right.database {
            return left.description.withUTF8Span { leftName in
                right.description.withUTF8Span { ResourcePath.compareNames(leftName, $0) < 0 }
            }
        }
        return unsafe ResourcePath.compare(left.utf8.span.bytes, right.utf8.span.bytes) < 0
    }
}

/// The name of a collection: a database and a path that ends with a collection id.
package struct CollectionPath: Sendable, Hashable {
    package let database: DatabaseName
    /// The path below `documents`, `users/jeff/tasks`; an odd number of segments.
    package let utf8: [UInt8]

    /// Parses a full collection name, `projects/…/databases/…/documents/users`.
    package init(_ name: String, rules: NameRules = .stored) throws(RequestError) {
        self = try name.withUTF8Span { (bytes) throws(RequestError) in
            let view = try ResourceNameView(resource: bytes, rules: rules)
            guard view.isCollection else { throw RequestError(.notACollection, name: bytes) }
            return CollectionPath(view)
        }
    }

    /// A path below `documents` of a database: `users/jeff/tasks`.
    package init(database: DatabaseName, path: String, rules: NameRules = .stored) throws(RequestError) {
        try self.init("\(database.documentsRoot)/\(path)", rules: rules)
    }

    /// Copies a view of a collection's name.
    package init(_ name: borrowing ResourceNameView) {
        precondition(name.isCollection, "CollectionPath made of a name that is not a collection's")
        database = DatabaseName(of: name)
        utf8 = [UInt8](copying: name.pathBytes)
    }

    init(database: DatabaseName, checked utf8: [UInt8]) {
        self.database = database
        self.utf8 = utf8
    }

    package var segments: [String] { PathBytes.segments(utf8) }

    /// The last segment.
    package var collectionID: String { PathBytes.lastSegment(utf8) }

    /// The path below `documents`.
    package var path: String { String(decoding: utf8, as: UTF8.self) }

    /// The document above a sub-collection; nil for a top-level collection, whose parent is the root.
    package var parent: DocumentPath? {
        let above = PathBytes.dropLast(utf8)
        return above.isEmpty ? nil : DocumentPath(database: database, checked: above)
    }

    /// A document of this collection.
    package func document(_ id: String, rules: NameRules = .stored) throws(RequestError) -> DocumentPath {
        try DocumentPath("\(self)/\(id)", rules: rules)
    }
}

extension CollectionPath: CustomStringConvertible {
    /// The full name, `projects/…/databases/…/documents/users`.
    package var description: String { "\(database.documentsRoot)/\(path)" }
}

/// Cutting paths at their slashes.
private enum PathBytes {
    static let slash = UInt8(ascii: "/")

    static func segments(_ utf8: [UInt8]) -> [String] {
        utf8.split(separator: slash).map { String(decoding: $0, as: UTF8.self) }
    }

    static func lastSegment(_ utf8: [UInt8]) -> String {
        let start = utf8.lastIndex(of: slash).map { $0 + 1 } ?? 0
        return String(decoding: utf8[start...], as: UTF8.self)
    }

    static func dropLast(_ utf8: [UInt8]) -> [UInt8] {
        Array(utf8[..<(utf8.lastIndex(of: slash) ?? 0)])
    }
}

extension ResourceNameView {
    /// As ``init(_:rules:)``, with an error that can be sent to the client.
    @_lifetime(copy bytes)
    package init(resource bytes: RawSpan, rules: NameRules = .stored) throws(RequestError) {
        do {
            try self.init(bytes, rules: rules)
        } catch {
            throw RequestError(error, name: bytes)
        }
    }
}

extension RequestError {
    /// `INVALID_ARGUMENT` for a resource name that breaks a rule.
    package init(_ problem: NameProblem, name: RawSpan) {
        if problem == .reservedID, let error = RequestError(reservedIDIn: name) {
            self = error
            return
        }
        // A hostile name may be as long as a request: quote the beginning only.
        let shown = String(repairingUTF8: name.extracting(first: 200)) + (name.byteCount > 200 ? "…" : "")
        self.init(.invalidArgument, "Invalid resource name \"\(shown)\": \(problem.text).")
    }

    /// The refusal of the first reserved id in a resource name; nil if there is none.
    private init?(reservedIDIn name: RawSpan) {
        guard let database = DatabaseName.prefixByteCount(of: name) else { return nil }
        let pathOffset = min(database + ResourceNameView.documentsSuffixBytes + 1, name.byteCount)
        var segments = PathSegments(name.extracting(pathOffset..<name.byteCount))
        var isCollection = true
        while let id = segments.next() {
            if ResourceID.problem(id, isCollection: isCollection, rules: .request) == .reservedID {
                self.init(reservedID: id, isCollection: isCollection)
                return
            }
            isCollection.toggle()
        }
        return nil
    }

    /// `INVALID_ARGUMENT` for an id that is reserved.
    package init(reservedID id: RawSpan, isCollection: Bool) {
        let kind = isCollection ? "Collection" : "Resource"
        self.init(
            .invalidArgument, "\(kind) id \"\(String(repairingUTF8: id))\" is invalid because it is reserved.")
    }
}
