// What the store knows of its indexes on demand. Queries report from their threads which indexes they use and lack. The
// commit thread asks once a second what to change. Operators ask what has happened.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import Storage
internal import StoreFormat
internal import Synchronization

/// The indexes on demand of an open store. Thread-safe.
final class AdaptiveIndexes: IndexUsage {
    private struct State {
        var demand: IndexDemand
        /// The indexes at the last round, and whether each was ready; nil before the first one.
        var known: [AdaptiveIndex: Bool]?
        var statistics = AdaptiveIndexStatistics()
        var events: [AdaptiveIndexEvent] = []
    }

    private let settings: AdaptiveIndexSettings
    private let clock: any StoreClock
    private let databases: DatabaseDirectory
    private let indexState: SharedIndexStates
    private let state: Mutex<State>

    /// Events that are kept until `takeEvents`.
    private static let eventsMax = 200

    init(_ configuration: StoreConfiguration, databases: DatabaseDirectory, indexState: SharedIndexStates) {
        settings = configuration.adaptiveIndexes
        clock = configuration.clock
        self.databases = databases
        self.indexState = indexState
        state = Mutex(State(demand: IndexDemand(settings, now: configuration.clock.nowMicroseconds / 1_000_000)))
    }

    private var now: UInt64 { clock.nowMicroseconds / 1_000_000 }

    // MARK: Queries

    var scanMin: Int { settings.documentsPerQuery }

    func noteUse(of indexes: [AdaptiveIndex]) {
        let now = now
        state.withLock { state in
            for index in indexes { state.demand.noteUse(of: index, now: now) }
        }
    }

    func noteScan(lacking indexes: [AdaptiveIndex], documents: Int, of total: Int) {
        let now = now
        state.withLock { state in
            for index in indexes {
                state.demand.noteScan(lacking: index, documents: documents, of: total, now: now)
            }
        }
    }

    func progress(of index: AdaptiveIndex) -> String {
        let group = indexState.current.groups.group(Array(index.collectionID.utf8).byteSpan, in: index.database)
        if let group, group.adaptiveIndexes.contains(where: { $0.index == index }) {
            return group.state.hasWork ? "being built, \(group.visited) documents visited" : "built"
        }
        let now = now
        let demand = state.withLock { $0.demand.demand(for: index, now: now) }
        if demand.documents >= demand.needed { return "requested" }
        return "not requested, \(demand.documents) of \(demand.needed) documents read in vain"
    }

    // MARK: The commit thread

    /// The changes that are due, by the states of all indexes.
    func changes(_ states: IndexStates) -> [IndexChange] {
        // Before that, entries of all kinds are being made or removed.
        guard states.automatic.phase == .complete, !states.groups.common.adaptive.isEmpty else { return [] }
        var inventory = IndexInventory()
        inventory.isBusy = states.groups.all.contains { $0.state.hasWork }
        inventory.allKeptSince = states.groups.common.allKeptSince
        for group in states.groups.all {
            inventory.entries += group.adaptiveIndexes.map { index, lastUse in
                IndexInventory.Entry(index, lastUse: lastUse, isReady: group.isReady(index))
            }
        }
        let now = now
        return state.withLock { state in
            note(inventory, in: &state)
            return state.demand.changes(inventory, now: now) { index in
                let id = Array(index.collectionID.utf8)
                return states.groups.group(id.byteSpan, in: index.database)?.leavesOpen(index) ?? true
            }
        }
    }

    /// Notes which indexes have come and gone since the last round.
    private func note(_ inventory: IndexInventory, in state: inout State) {
        var found: [AdaptiveIndex: Bool] = [:]
        for entry in inventory.entries { found[entry.index] = entry.isReady }
        defer {
            state.known = found
            state.statistics.count = found.count
        }
        guard let known = state.known, known != found else { return }
        // While all fields have entries, indexes that appear were there before.
        for (index, isReady) in found where inventory.allKeptSince == nil {
            if known[index] == nil { add(.requested, index, to: &state) }
            if isReady, known[index] != true {
                state.statistics.made += 1
                add(.made, index, to: &state)
            }
        }
        for index in known.keys where found[index] == nil {
            state.statistics.dropped += 1
            add(.dropped, index, to: &state)
        }
    }

    private func add(_ change: AdaptiveIndexEvent.Change, _ index: AdaptiveIndex, to state: inout State) {
        if state.events.count >= Self.eventsMax { state.events.removeFirst() }
        let database = databases.name(of: index.database)
        state.events.append(
            AdaptiveIndexEvent(
                change: change, database: database.map { "\($0)" } ?? "", collectionID: index.collectionID,
                field: "\(index.field)", isOfElements: index.kind == .elements))
    }

    // MARK: Operators

    var statistics: AdaptiveIndexStatistics { state.withLock { $0.statistics } }

    func takeEvents() -> [AdaptiveIndexEvent] {
        state.withLock { state in
            defer { state.events = [] }
            return state.events
        }
    }
}

/// Numbers about indexes on demand.
package struct AdaptiveIndexStatistics: Sendable, Equatable {
    /// Those that exist or are being built.
    package var count = 0
    /// Those made since the store was opened.
    package var made: UInt64 = 0
    /// Those dropped since the store was opened.
    package var dropped: UInt64 = 0
}

/// What has happened to an index on demand.
package struct AdaptiveIndexEvent: Sendable, Equatable {
    /// What happened.
    package enum Change: Sendable {
        /// Its entries are being built.
        case requested
        /// Queries use it.
        case made
        case dropped
    }

    package let change: Change
    /// The database's full name.
    package let database: String
    /// The id of the collections.
    package let collectionID: String
    /// The path of the field, with backticks where it needs them.
    package let field: String
    /// By the elements of arrays; otherwise by values.
    package let isOfElements: Bool
}

extension DocumentStore {
    /// What has happened to indexes on demand since the last call; at most 200 events are kept.
    package func takeIndexEvents() -> [AdaptiveIndexEvent] { adaptiveIndexes?.takeEvents() ?? [] }
}
