// Where a walk through indexes stands: all that is kept of it between two pages.
//
// The walking itself is `StoreScanner+Indexes`; this is what it starts from again.

import DocumentModel

/// An access in the course of being walked.
package struct IndexWalk: Sendable {
    let access: IndexAccess
    let scope: QueryScope
    /// The names that can be results.
    let names: NameRange
    /// The orders by which candidates come, if the access is ordered.
    let orders: [Order]

    /// The part being walked; past the last one the walk is finished.
    var part = 0
    /// In a part of intervals: the one being walked, counted in the direction of the walk.
    var interval = 0
    /// In an interval: the key to go on at, the first one going up, the first one not wanted any more going down.
    var key: [UInt8]?
    /// In a merge: the rest of the entry met last.
    var rest: [UInt8]?
    /// In an ordered merge: the key of the document met last.
    var lastDocument: [UInt8] = []
    /// A group of entries whose order is not that of the keys, being given out in the order of their documents.
    var group: Group?
    /// A merge met a value or id too long for its key and cannot say what comes next: a sort must go on, behind the document with
    /// this sort key (empty: from the start).
    var handedOverAfter: [UInt8]?
    var isHandedOver: Bool { handedOverAfter != nil }
    /// Whether the transaction knows of the walk.
    var isNoted = false

    /// Index entries looked at.
    package internal(set) var entriesScanned = 0
    /// Documents read.
    package internal(set) var documentsRead = 0

    struct Group: Sendable {
        /// What the keys of its entries begin with, and the first key after them.
        var lower: [UInt8]
        var upper: [UInt8]
        /// The sort key of the document given out last.
        var after: [UInt8]?
    }

    init(_ access: IndexAccess, of plan: QueryPlan) {
        self.access = access
        names = plan.names
        scope = plan.matcher.scope
        orders = plan.sortOrders
    }

    var isFinished: Bool { part >= access.parts.count && !isHandedOver }

    /// Goes back to the beginning.
    mutating func restart() {
        part = 0
        beginPart()
    }

    mutating func nextPart() {
        part += 1
        beginPart()
    }

    private mutating func beginPart() {
        interval = 0
        key = nil
        rest = nil
        group = nil
    }

    /// Whether the document is for this part to give out. Of several alternatives that it meets the first one does, so that it comes
    /// once; a part may come upon documents that meet the alternatives of others only.
    func isDue(path: RawSpan, fields: RawSpan) -> Bool {
        if !isSameCollection(part - 1), !isSameCollection(part + 1) { return true }
        var earlier = part - 1
        while isSameCollection(earlier) {
            if access.parts[earlier].accepts(path: path, fields: fields) { return false }
            earlier -= 1
        }
        return access.parts[part].accepts(path: path, fields: fields)
    }

    /// Whether there is another part over the same collection as the present one. Such lie side by side.
    private func isSameCollection(_ other: Int) -> Bool {
        access.parts.indices.contains(other) && access.parts[other].collection == access.parts[part].collection
    }
}

extension AccessPart {
    fileprivate func accepts(path: RawSpan, fields: RawSpan) -> Bool {
        disjuncts.contains { $0.matches(path: path, fields: fields) }
    }
}
