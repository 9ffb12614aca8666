// The commit thread's part in the indexes: the entries of committed documents, and index builds.
//
// An index build is a series of steps. A step covers a range of keys and is a separate commit. Deciding it finds
// the end of the range; its record has the range and the state after it; applying the record derives the entries,
// live and at recovery. A crash loses at most the last step, and commits continue between two steps.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import Storage
internal import StorageEngines
internal import StoreFormat
internal import TextAnalysis

/// Keeps the entries and the state. Belongs to the commit thread, or to recovery.
struct IndexMaintenance: ~Copyable {
    var derivation: IndexDerivation<FieldNumbers>
    /// Of the automatic indexes.
    private(set) var state: IndexState
    var declared: DeclaredIndexes
    var groups: OverriddenGroups
    var search: SearchDerivation
    /// The states before the commit that is being made, if it changes them.
    private var statesBefore: IndexStates?
    /// No state of the automatic indexes is stored yet.
    private(set) var isNew: Bool
    private var wasNew = false
    let latest: LatestReader

    /// Begins with what is stored.
    /// - Parameter textLibraries: see `StoreConfiguration.textLibraries`.
    init(
        latest: LatestReader, textLibraries: @escaping @Sendable () -> TextLibraries
    ) throws(StorageError) {
        let state = try IndexState.stored(latest)
        let declared = try DeclaredIndexes(latest: latest)
        let groups = try OverriddenGroups(latest: latest)
        let key = IndexState.key
        let isNew = try latest.value(forKey: key.byteSpan) == nil
        derivation = IndexDerivation(FieldNumbers(latest: latest))
        search = SearchDerivation(libraries: textLibraries)
        self.state = state
        self.declared = declared
        self.groups = groups
        self.latest = latest
        self.isNew = isNew
    }

    /// Whether commits have entries to keep.
    var keepsEntries: Bool { state.isKept && !groups.keepNothing || !declared.definitions.isEmpty }

    var states: IndexStates { IndexStates(automatic: state, declared: declared.definitions, groups: groups) }

    /// Brings the entries of a written document up to date.
    mutating func derive<Sink: IndexEntrySink & ~Copyable>(
        _ document: borrowing IndexedDocument, from old: RawSpan, to new: RawSpan, into sink: inout Sink
    ) throws(StorageError) {
        if state.isKept { try deriveAutomatic(document, from: old, to: new, into: &sink) }
        declared.derive(document, from: old, to: new, into: &sink)
        if declared.definitions.searches.isEmpty { return }
        let id = KeyedDocument.collectionID(ofDocument: document.path)
        let indexes = declared.definitions.indexes(of: id, in: document.database)
        try search.derive(indexes, document, from: old, to: new, into: &sink, latest: latest)
    }

    /// Whether a document would have more entries than allowed, those for searches not counted.
    func exceeds(entriesMax: Int, fields: RawSpan, _ path: RawSpan, in database: UInt32) -> Bool {
        let automatic = state.isKept ? IndexedValue.entriesMax(fields: fields) : 0
        if automatic + declared.entriesMax(fields: fields, path, in: database) <= entriesMax { return false }
        var left = entriesMax - declared.entryCount(of: fields, path, in: database)
        if left >= 0, state.isKept {
            let rules = groups.settings(ofDocument: path, in: database)?.rules
            IndexedValue.count(fields, rules: rules, left: &left)
        }
        return left < 0
    }

    /// The entries of a document by what they are of, those for searches not counted: the most first.
    func entryCounts(
        of fields: RawSpan, _ path: RawSpan, in database: UInt32
    ) -> [(what: String, count: Int)] {
        var counts = declared.entryCounts(of: fields, path, in: database).map { entry in
            (what: "the index \(entry.index.shape.json)", count: entry.count)
        }
        if state.isKept {
            let rules = groups.settings(ofDocument: path, in: database)?.rules
            counts += IndexedValue.counts(fields, rules: rules).map { (what: "the field \($0.field)", count: $0.count) }
        }
        return counts.sorted { $0.count > $1.count }
    }

    /// Brings the automatic entries of a document up to date.
    mutating func deriveAutomatic<Sink: IndexEntrySink & ~Copyable>(
        _ document: borrowing IndexedDocument, from old: RawSpan, to new: RawSpan, into sink: inout Sink
    ) throws(StorageError) {
        // Most databases have no overrides: nothing is looked up for them.
        guard let group = groups.settings(ofDocument: document.path, in: document.database)
        else { return try derivation.derive(document, from: old, to: new, into: &sink) }
        if group.keepsNothing { return }
        try derivation.derive(document, from: old, to: new, by: group.rules, group.purpose, into: &sink)
    }

    /// Keys of entries, and of documents.
    private static let entries = (from: [KeySpace.values.rawValue], to: [KeySpace.elements.rawValue + 1])
    static let documents = (from: [KeySpace.documents.rawValue], to: [KeySpace.documents.rawValue + 1])

    // MARK: States

    /// The state to be in, given whether indexes are wanted; nil if it is the present one or on the way there.
    func change(isWanted: Bool) throws(StorageError) -> IndexState? {
        if !isWanted { return state.phase == .off ? nil : .off }
        if state.phase != .off { return nil }
        let hasDocuments = try hasKeys(in: IndexMaintenance.documents)
        if !hasDocuments, try !hasKeys(in: IndexMaintenance.entries) { return IndexState(phase: .complete) }
        return IndexState(phase: .clearing, position: IndexMaintenance.entries.from)
    }

    private func hasKeys(in range: (from: [UInt8], to: [UInt8])) throws(StorageError) -> Bool {
        var cursor = try latest.cursor(from: range.from.byteSpan, to: range.to.byteSpan)
        return try cursor.next()
    }

    // MARK: One commit

    /// The commit is staged.
    mutating func keepCommit() {
        derivation.fields.keepCommit()
        search.keepCommit()
        statesBefore = nil
    }

    /// The commit came to nothing: field numbers and states are as before.
    mutating func rollBackCommit() {
        derivation.fields.rollBackCommit()
        search.rollBackCommit()
        guard let before = statesBefore else { return }
        state = before.automatic
        declared.definitions = before.declared
        groups = before.groups
        isNew = wasNew
        statesBefore = nil
    }

    /// Puts what the commit has changed besides entries: the numbers of new fields, the statistics of searches.
    mutating func writeChanges(into batch: inout MutationBatch) {
        derivation.fields.writeChanges(into: &batch)
        search.writeChanges(into: &batch)
    }

    /// To be called before a commit changes a state or definition.
    mutating func willChangeStates() {
        if statesBefore != nil { return }
        statesBefore = states
        wasNew = isNew
    }

    /// Takes a new state and puts it.
    private mutating func enter(_ new: IndexState, into batch: inout MutationBatch) {
        willChangeStates()
        state = new
        isNew = false
        var value = ByteBuffer(capacity: 64)
        new.append(to: &value)
        let key = IndexState.key
        batch.put(key: key.byteSpan, value: value.bytes)
    }

    // MARK: Steps

    private var work: Work { state.phase == .clearing ? .clear : .buildAutomatic }

    /// The builds that have steps to take, in their order.
    var builds: [IndexBuild] {
        (state.hasWork ? [.automatic] : []) + declared.definitions.working.map { IndexBuild($0) }
            + groups.working.map { IndexBuild($0) }
    }

    /// The first of them that is not paused. It does not go over the others.
    func firstBuild(besides paused: Set<IndexBuild>) -> IndexBuild? {
        if state.hasWork, !paused.contains(.automatic) { return .automatic }
        let index = declared.definitions.working.first { !paused.contains(IndexBuild($0)) }
        if let index { return IndexBuild(index) }
        return groups.firstWorking { !paused.contains(IndexBuild($0)) }.map { IndexBuild($0) }
    }

    /// Decides what brings the indexes one step further: a change of the mode or state of the automatic indexes, else
    /// the next step of building or clearing them, else the next step of a declared index or of an overridden group.
    ///
    /// - Parameters:
    ///   - mode: whether automatic indexes are to be kept.
    ///   - paused: builds that are not to be continued now.
    ///   - version: the commit that the step will be.
    ///   - record: takes the record of the step.
    /// - Returns: false if there is nothing to do.
    func decideStep(
        mode: AutomaticIndexes, besides paused: Set<IndexBuild>, version: CommitVersion,
        into record: inout ByteBuffer
    ) throws(StorageError) -> Bool {
        let definitions = definitions(entering: mode, at: version)
        if !definitions.isEmpty {
            DefinitionRecord.write(from: [], to: [], definitions, into: &record)
            return true
        }
        if let state = try change(isWanted: isWanted(mode)) {
            IndexStepRecord.write(from: [], to: [], state: state, into: &record)
            return true
        }
        if !state.hasWork || paused.contains(.automatic) {
            return try decideDeclaredStep(besides: paused, version: version, into: &record)
        }
        let isClearing = state.phase == .clearing
        let end = isClearing ? IndexMaintenance.entries.to : IndexMaintenance.documents.to
        if let stop = try endOfStep(work, from: state.position, to: end) {
            let next = IndexState(phase: state.phase, position: stop)
            IndexStepRecord.write(from: state.position, to: stop, state: next, into: &record)
            return true
        }
        let next =
            isClearing
            ? IndexState(phase: .building, position: IndexMaintenance.documents.from)
            : IndexState(phase: .complete, completeSince: version.microseconds)
        IndexStepRecord.write(from: state.position, to: end, state: next, into: &record)
        return true
    }

    /// Does what a step's record says.
    mutating func apply(
        _ record: borrowing IndexStepRecord, catalogue: inout Catalogue, into batch: inout MutationBatch
    ) throws(StorageError) {
        guard let next = IndexState(record.state) else {
            throw StorageError(.corrupt, "a record about indexes cannot be read")
        }
        if state.hasWork, record.to.byteCount > 0 {
            try perform(
                work, from: [UInt8](copying: record.from), to: [UInt8](copying: record.to), catalogue: &catalogue,
                into: &batch)
        }
        enter(next, into: &batch)
    }
}
