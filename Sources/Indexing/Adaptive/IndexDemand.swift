// Which indexes are worth their entries: a pure state machine. Times come from the caller.
//
//     query reads documents in vain ──► demand of each index that it lacks, halved every hour
//     demand reaches the bound      ──► make        (the bound is at least half the size of the collection: the walk
//                                                    over it reads at most twice what queries have read in vain)
//     query uses an index           ──► last use, stored again when it is an hour younger than the stored one
//     last use too long ago         ──► drop
//
// Bounds: so many demands are remembered, the smallest is forgotten first; so many indexes exist in a group and in a
// database; one group is changed at a time. If a group or database is full, the index that was not used for the longest
// time goes, if that is an hour or more; else the demand waits.

internal import Basics

/// A change of the indexes on demand.
package enum IndexChange: Sendable, Hashable {
    case make(AdaptiveIndex, lastUse: UInt64)
    case drop(AdaptiveIndex)
    /// Stores when the index was used last, in seconds since 1970.
    case touch(AdaptiveIndex, lastUse: UInt64)
    /// Gives up the entries that a directory had for all fields, except for the indexes that were used since a time.
    case dropOthers(unusedSince: UInt64)
}

/// Settings of the indexes on demand.
package struct AdaptiveIndexSettings: Sendable, Equatable {
    /// Documents that queries must have read in vain before an index is made.
    package var documentsDemanded = 10_000
    /// Documents that one query must read in vain to be counted.
    package var documentsPerQuery: Int { max(documentsDemanded / 10, 1) }
    /// Time without use after which an index is dropped.
    package var unusedMilliseconds: UInt64 = 7 * 86_400_000
    var unusedSeconds: UInt64 { unusedMilliseconds / 1_000 }
    /// Indexes of one collection group.
    package var indexesPerGroupMax = 40
    /// Indexes of one database.
    package var indexesPerDatabaseMax = 200

    package init() {}

    /// Time between two notes of an index's last use, in seconds.
    var granularity: UInt64 { min(3_600, max(unusedSeconds / 8, 1)) }
}

/// What is known of the indexes that exist.
package struct IndexInventory: Sendable {
    /// One index that exists or is being built.
    package struct Entry: Sendable {
        package let index: AdaptiveIndex
        /// When a query last used it, in seconds since 1970.
        package let lastUse: UInt64
        /// Queries can use it.
        package let isReady: Bool

        package init(_ index: AdaptiveIndex, lastUse: UInt64, isReady: Bool) {
            self.index = index
            self.lastUse = lastUse
            self.isReady = isReady
        }
    }

    package var entries: [Entry] = []
    /// Entries are being added or removed somewhere.
    package var isBusy = false
    /// When the store began to count the use of the entries that it has for all fields; nil if it has not.
    package var allKeptSince: UInt64?

    package init() {}
}

/// Counts what queries need, and decides.
package struct IndexDemand: Sendable {
    private struct UnmetDemand {
        var documents: Double
        var seconds: UInt64
        var total: Int

        func documents(at now: UInt64) -> Double {
            now <= seconds ? documents : documents * share(after: now - seconds)
        }

        /// What is left of a demand after so many seconds, from 1 to 0.
        private func share(after seconds: UInt64) -> Double {
            if seconds >= 64 * IndexDemand.halfLifeSeconds { return 0 }
            let halves = seconds / IndexDemand.halfLifeSeconds
            let rest = Double(seconds % IndexDemand.halfLifeSeconds) / Double(IndexDemand.halfLifeSeconds)
            // Between two halvings the line between them is close enough.
            return (1 - rest / 2) / Double(UInt64(1) << halves)
        }
    }

    /// Demands and uses that are remembered; a name in one has up to three kilobytes.
    static let unmetDemandsMax = 1_024
    static let usesMax = 4_096
    /// Time in which demand falls to a half, in seconds.
    static let halfLifeSeconds: UInt64 = 3_600
    /// How long an index must have been unused to make room for another one, in seconds.
    static let displacementSeconds: UInt64 = 3_600

    private let settings: AdaptiveIndexSettings
    /// When counting began: nothing is dropped before uses could be noted again.
    private let begun: UInt64
    private var unmetDemands: [AdaptiveIndex: UnmetDemand] = [:]
    private var uses: [AdaptiveIndex: UInt64] = [:]

    package init(_ settings: AdaptiveIndexSettings, now: UInt64) {
        self.settings = settings
        begun = now
    }

    // MARK: Reports of queries

    /// A query has used an index.
    package mutating func noteUse(of index: AdaptiveIndex, now: UInt64) {
        if let known = uses[index] {
            if known < now { uses[index] = now }
        } else if uses.count < Self.usesMax {
            uses[index] = now
        }
    }

    /// A query has read documents in vain.
    package mutating func noteScan(lacking index: AdaptiveIndex, documents: Int, of total: Int, now: UInt64) {
        if unmetDemands[index] == nil, unmetDemands.count >= Self.unmetDemandsMax {
            let least = unmetDemands.min { $0.value.documents(at: now) < $1.value.documents(at: now) }
            guard let least, least.value.documents(at: now) < Double(documents) else { return }
            unmetDemands[least.key] = nil
        }
        let before = unmetDemands[index]?.documents(at: now) ?? 0
        unmetDemands[index] = UnmetDemand(documents: before + Double(documents), seconds: now, total: total)
    }

    /// Documents read in vain so far, and how many make the index be made.
    package func demand(for index: AdaptiveIndex, now: UInt64) -> (documents: Int, needed: Int) {
        guard let unmet = unmetDemands[index] else { return (0, settings.documentsDemanded) }
        return (Int(unmet.documents(at: now)), needed(unmet))
    }

    private func needed(_ unmet: UnmetDemand) -> Int { max(settings.documentsDemanded, unmet.total / 2) }

    // MARK: Decisions

    /// What is to be changed now.
    ///
    /// - Parameter isOpen: whether the store may make the index, or declared settings decide about its field.
    package mutating func changes(
        _ inventory: IndexInventory, now: UInt64, isOpen: (AdaptiveIndex) -> Bool
    ) -> [IndexChange] {
        var changes = touches(inventory)
        if inventory.isBusy { return changes }
        let canDrop = now >= begun + settings.granularity
        if let since = inventory.allKeptSince {
            guard canDrop, now >= since + settings.unusedSeconds else { return changes }
            return changes + [.dropOthers(unusedSince: now - settings.unusedSeconds)]
        }
        if canDrop {
            let unused = inventory.entries.filter { entry in
                entry.isReady && lastUse(entry) + settings.unusedSeconds <= now
            }
            changes += unused.map { .drop($0.index) }
            if !unused.isEmpty { return changes }
        }
        return changes + makes(inventory, now, isOpen)
    }

    private func lastUse(_ entry: IndexInventory.Entry) -> UInt64 { max(entry.lastUse, uses[entry.index] ?? 0) }

    /// Uses to be stored: all that are younger than the stored ones, if one of them is by enough.
    private mutating func touches(_ inventory: IndexInventory) -> [IndexChange] {
        var known: [AdaptiveIndex: UInt64] = [:]
        for entry in inventory.entries { known[entry.index] = entry.lastUse }
        if inventory.allKeptSince == nil {
            uses = uses.filter { known[$0.key] != nil }
            let isDue = uses.contains { $0.value >= (known[$0.key] ?? 0) + settings.granularity }
            guard isDue else { return [] }
            return uses.filter { $0.value > known[$0.key] ?? 0 }.map { .touch($0.key, lastUse: $0.value) }
        }
        // All fields have entries: each that is used is noted, as far as there is room.
        var counts = IndexCounts(inventory, settings)
        var changes: [IndexChange] = []
        for (index, seconds) in uses.sorted(by: { $0.value > $1.value }) {
            if let stored = known[index] {
                if seconds >= stored + settings.granularity { changes.append(.touch(index, lastUse: seconds)) }
            } else if counts.take(index) {
                changes.append(.touch(index, lastUse: seconds))
            }
        }
        return changes
    }

    /// The indexes of one group that are to be made; or one that makes room for them.
    private mutating func makes(
        _ inventory: IndexInventory, _ now: UInt64, _ isOpen: (AdaptiveIndex) -> Bool
    ) -> [IndexChange] {
        let existing = Set(inventory.entries.map(\.index))
        unmetDemands = unmetDemands.filter { !existing.contains($0.key) && $0.value.documents(at: now) >= 1 }
        var due = unmetDemands.filter { $0.value.documents(at: now) >= Double(needed($0.value)) }.map(\.key)
        for index in due where !isOpen(index) { unmetDemands[index] = nil }
        due = due.filter { unmetDemands[$0] != nil }
        due.sort {
            let (left, right) = (unmetDemands[$0]!.documents(at: now), unmetDemands[$1]!.documents(at: now))
            return left == right ? $0.description < $1.description : left > right
        }
        var counts = IndexCounts(inventory, settings)
        var changes: [IndexChange] = []
        var group: AdaptiveIndex?
        for index in due {
            if let group, group.database != index.database || group.collection != index.collection { continue }
            if counts.take(index) {
                group = index
                unmetDemands[index] = nil
                changes.append(.make(index, lastUse: now))
            } else if group == nil, let oldest = oldest(excluding: index, inventory, counts), changes.isEmpty,
                lastUse(oldest) + Self.displacementSeconds <= now
            {
                return [.drop(oldest.index)]
            }
        }
        return changes
    }

    /// The index that was not used for the longest time where an index has no room.
    private func oldest(
        excluding index: AdaptiveIndex, _ inventory: IndexInventory, _ counts: borrowing IndexCounts
    ) -> IndexInventory.Entry? {
        let isGroupFull = counts.isGroupFull(of: index)
        return inventory.entries.filter { entry in
            entry.isReady && entry.index.database == index.database
                && (!isGroupFull || entry.index.collection == index.collection)
        }.min { lastUse($0) < lastUse($1) }
    }

    /// Counts indexes by group and database.
    private struct IndexCounts {
        private struct Group: Hashable {
            let database: UInt32
            let id: UTF8Text
        }

        private let settings: AdaptiveIndexSettings
        private var databases: [UInt32: Int] = [:]
        private var groups: [Group: Int] = [:]

        init(_ inventory: IndexInventory, _ settings: AdaptiveIndexSettings) {
            self.settings = settings
            for entry in inventory.entries { count(entry.index) }
        }

        private mutating func count(_ index: AdaptiveIndex) {
            databases[index.database, default: 0] += 1
            groups[Group(database: index.database, id: index.collection), default: 0] += 1
        }

        func isGroupFull(of index: AdaptiveIndex) -> Bool {
            groups[Group(database: index.database, id: index.collection), default: 0]
                >= settings.indexesPerGroupMax
        }

        /// Counts one more, if it has room.
        mutating func take(_ index: AdaptiveIndex) -> Bool {
            if isGroupFull(of: index) || databases[index.database, default: 0] >= settings.indexesPerDatabaseMax {
                return false
            }
            count(index)
            return true
        }
    }
}
