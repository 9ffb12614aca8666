// Ranges of document ids within one collection.

internal import DocumentModel

/// One end of a range of ids.
package struct DocumentIDBound: Sendable, Equatable {
    /// The last segment of the document's name, UTF-8.
    package var id: [UInt8]
    package var isInclusive: Bool

    package init(id: [UInt8], isInclusive: Bool) {
        self.id = id
        self.isInclusive = isInclusive
    }
}

/// A range of document ids within one collection; a missing bound is open. May be empty.
package struct DocumentIDRange: Sendable, Equatable {
    /// Nil: from the first id.
    package var lower: DocumentIDBound?
    /// Nil: to the last id.
    package var upper: DocumentIDBound?

    package init(lower: DocumentIDBound? = nil, upper: DocumentIDBound? = nil) {
        self.lower = lower
        self.upper = upper
    }

    /// Every id.
    package static let all = DocumentIDRange()

    /// Whether the bounds leave no id.
    package var isEmpty: Bool {
        guard let lower, let upper else { return false }
        let order = ResourceID.compare(lower.id.byteSpan, upper.id.byteSpan)
        return order > 0 || (order == 0 && !(lower.isInclusive && upper.isInclusive))
    }

    func contains(_ id: RawSpan) -> Bool {
        if let lower {
            let order = ResourceID.compare(id, lower.id.byteSpan)
            if order < 0 || (order == 0 && !lower.isInclusive) { return false }
        }
        if let upper {
            let order = ResourceID.compare(id, upper.id.byteSpan)
            if order > 0 || (order == 0 && !upper.isInclusive) { return false }
        }
        return true
    }

    /// Removes an id and everything before it in the direction of the scan.
    mutating func removeThrough(_ id: [UInt8], _ direction: SortDirection) {
        let bound = DocumentIDBound(id: id, isInclusive: false)
        switch direction {
        case .ascending: lower = bound
        case .descending: upper = bound
        }
    }

    /// Replaces the upper bound unless the present one is tighter.
    mutating func lowerUpperBound(to bound: DocumentIDBound) {
        if let upper {
            let order = ResourceID.compare(upper.id.byteSpan, bound.id.byteSpan)
            if order < 0 || (order == 0 && !upper.isInclusive) { return }
        }
        upper = bound
    }
}
