// Indexes that are made on demand: what identifies one, and what queries report about them.

internal import Basics
package import DocumentModel

/// Whether a store indexes every field by itself.
package enum AutomaticIndexes: Sendable, Equatable {
    /// Every field has entries.
    case on
    /// No field has entries.
    case off
    /// A field gets entries when queries need them, and loses them when they are long unused.
    case adaptive
    /// As the directory is; a new one is `on`. For tools that do not serve it.
    case unchanged
}

/// An index of one field of a collection group, in every collection of the group.
package struct AdaptiveIndex: Hashable, Sendable {
    /// The number that stands for the database in keys.
    package let database: UInt32
    /// The id of the group's collections, without a path.
    package var collectionID: String { collection.string }
    /// The same, which is compared by its bytes.
    let collection: UTF8Text
    package let field: FieldPath
    /// One kind of entries.
    package let kind: EntryKinds

    package init(database: UInt32, collectionID: String, field: FieldPath, kind: EntryKinds) {
        self.database = database
        collection = UTF8Text(collectionID)
        self.field = field
        self.kind = kind
    }

    /// The kind as settings of fields name it.
    package var modes: FieldOverride.Modes { kind == .values ? [.ascending, .descending] : .contains }

    /// The entry of the group's settings that makes the index exist.
    package func override(lastUse: UInt64) -> FieldOverride {
        FieldOverride(collectionID: collectionID, field: field, indexes: modes, lastUse: lastUse)
    }
}

extension AdaptiveIndex: CustomStringConvertible {
    /// `users (age)`, or `users (tags CONTAINS)`.
    package var description: String { "\(collectionID) (\(field)\(kind == .values ? "" : " CONTAINS"))" }
}

/// Takes what queries report about indexes on demand. Thread-safe.
package protocol IndexUsage: AnyObject, Sendable {
    /// Documents that a query must read in vain before it calls `noteScan`, and between two calls.
    var scanMin: Int { get }

    /// A query uses these indexes.
    func noteUse(of indexes: [AdaptiveIndex])

    /// A query has read documents that are not among its results, which these indexes would have left out.
    ///
    /// - Parameters:
    ///   - documents: those read since the last call for the query.
    ///   - total: about how many documents its collections have; 0 if unknown.
    func noteScan(lacking indexes: [AdaptiveIndex], documents: Int, of total: Int)

    /// How far an index that a query lacks is, in words for explain.
    func progress(of index: AdaptiveIndex) -> String
}
