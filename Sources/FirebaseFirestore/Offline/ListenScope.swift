// Which listeners a changed document may concern.

import FirestoreMessages

/// The documents among which a listener looks for its results.
enum ListenScope: Hashable {
    /// By its full name.
    case document(Substring)
    /// The documents of one collection, by its full name.
    case collection(Substring)
    /// The documents of all collections with an id.
    case group(Substring)
    /// All documents.
    case everything

    init(_ kind: ListenTarget.Kind) {
        switch kind {
        case .documents(let names): self = .document(Substring(names.first ?? ""))
        case .query(let parent, let query):
            guard let selector = query?.from.first, query?.from.count == 1 else {
                self = .everything
                return
            }
            self =
                selector.allDescendants
                ? .group(Substring(selector.collectionID)) : .collection("\(parent)/\(selector.collectionID)")
        case .invalidQuery, .pipeline: self = .everything
        }
    }

    /// The scopes that have a document.
    static func all(of name: String) -> [ListenScope] {
        let collection = name[..<(name.utf8.lastIndex(of: slash) ?? name.startIndex)]
        let id = collection.utf8.lastIndex(of: slash).map { collection[collection.utf8.index(after: $0)...] }
        return [.document(name[...]), .collection(collection), .group(id ?? collection), .everything]
    }

    private static var slash: UInt8 { UInt8(ascii: "/") }
}
