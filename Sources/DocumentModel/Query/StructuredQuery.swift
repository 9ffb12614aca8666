/// The message `google.firestore.v1.StructuredQuery`: from, where, order by, cursors, offset, limit, select.
///
/// The type represents the wire message and nothing more. `StructuredQuery+Wire.swift` reads and writes the bytes. The
/// query planner of DocumentStore checks the rules of Firestore: which filters may be combined, which order is implied.
package struct StructuredQuery: Sendable, Equatable {
    /// The fields to return; nil returns all of them.
    package var select: Projection?

    /// The collections to search. None means all collections directly below the parent; more than one is illegal. The
    /// rule is checked when the query is planned.
    package var from: [CollectionSelector]

    /// The condition a document must meet; nil accepts every document.
    package var filter: Filter?

    /// The orders the client wrote; see `EffectiveOrder` for those the rules append.
    package var orderBy: [Order]

    package var startAt: Cursor?
    package var endAt: Cursor?

    /// Documents to skip before the first result. Never negative once planned.
    package var offset: Int32

    /// The most documents to return; nil is unlimited.
    package var limit: Int32?

    /// Nearest-neighbour search as the last stage.
    package var findNearest: FindNearest?

    package init(
        select: Projection? = nil, from: [CollectionSelector] = [], filter: Filter? = nil, orderBy: [Order] = [],
        startAt: Cursor? = nil, endAt: Cursor? = nil, offset: Int32 = 0, limit: Int32? = nil,
        findNearest: FindNearest? = nil
    ) {
        self.select = select
        self.from = from
        self.filter = filter
        self.orderBy = orderBy
        self.startAt = startAt
        self.endAt = endAt
        self.offset = offset
        self.limit = limit
        self.findNearest = findNearest
    }
}

/// Which collections below the query's parent take part.
package struct CollectionSelector: Sendable, Equatable {
    /// The collection id; empty selects collections of every id.
    package var collectionID: String

    /// False: only collections directly below the parent. True: every collection of that id at any depth.
    package var allDescendants: Bool

    package init(collectionID: String, allDescendants: Bool = false) {
        self.collectionID = collectionID
        self.allDescendants = allDescendants
    }
}

/// A field to sort by, and which way.
package struct Order: Sendable, Equatable {
    package var field: FieldPath
    package var direction: SortDirection

    package init(field: FieldPath, direction: SortDirection = .ascending) {
        self.field = field
        self.direction = direction
    }

    /// The order of the same field in the opposite direction.
    package var reversed: Order { Order(field: field, direction: direction == .ascending ? .descending : .ascending) }
}

/// A sort direction. The wire's "unspecified" means ascending.
package enum SortDirection: UInt8, Sendable, Equatable {
    case ascending = 1
    case descending = 2
}

/// The fields a query or read returns.
package struct Projection: Sendable, Equatable {
    /// The paths asked for. In a query an empty list means all fields; in a read mask it means none.
    package var fields: [FieldPath]

    package init(fields: [FieldPath]) {
        self.fields = fields
    }
}

/// A position in a query's order: values for a prefix of the effective order.
package struct Cursor: Sendable, Equatable {
    package var values: [EncodedValue]

    /// True: the position just before documents equal to `values`; false: just after them.
    /// So a start is inclusive when true, and an end is inclusive when false.
    package var before: Bool

    package init(values: [EncodedValue], before: Bool) {
        self.values = values
        self.before = before
    }
}

/// Nearest-neighbour search: the documents whose vector lies closest to `queryVector`.
package struct FindNearest: Sendable, Equatable {
    package enum DistanceMeasure: UInt8, Sendable {
        case euclidean = 1
        case cosine = 2
        case dotProduct = 3
    }

    package var vectorField: FieldPath
    package var queryVector: EncodedValue
    package var distanceMeasure: DistanceMeasure

    /// The most documents to return: 1...1000.
    package var limit: Int32

    /// The name of the top-level field of the result that receives the distance, as it stands: no path, nothing is
    /// quoted. Nil adds none.
    package var distanceResultField: String?

    /// Documents farther away (for `dotProduct`: less similar) are left out.
    package var distanceThreshold: Double?

    package init(
        vectorField: FieldPath, queryVector: EncodedValue, distanceMeasure: DistanceMeasure, limit: Int32,
        distanceResultField: String? = nil, distanceThreshold: Double? = nil
    ) {
        self.vectorField = vectorField
        self.queryVector = queryVector
        self.distanceMeasure = distanceMeasure
        self.limit = limit
        self.distanceResultField = distanceResultField
        self.distanceThreshold = distanceThreshold
    }
}
