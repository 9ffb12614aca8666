internal import Basics
package import DocumentModel

/// A part of a store: one database or all, and in it one collection with everything below or all.
package struct StoreSelection: Sendable {
    private let database: DatabaseName?
    /// How the relative paths of the documents begin.
    private let prefix: [UInt8]

    /// - Parameter collection: a relative path, such as `users/ada/books`; nil for all.
    package init(database: DatabaseName? = nil, collection: String? = nil) {
        self.database = database
        prefix = collection.map { Array("\($0)/".utf8) } ?? []
    }

    func takes(_ name: DatabaseName) -> Bool { database == nil || database == name }

    func takes(path: RawSpan) -> Bool { path.startsWith(prefix.byteSpan) }
}
