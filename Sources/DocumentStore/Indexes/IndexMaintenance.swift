// The commit thread's part in the indexes: entries of what is committed, and the making of indexes step by step.
//
// A step goes over some keys in order, between two groups of commits, and is a commit of its own: the log says which keys it
// went over, and recovery goes over them again. So a crash loses no more than the last step, and writing never stops.

internal import DocumentModel
internal import KeyValueStore

/// Keeps the entries and the state. Belongs to the commit thread, or to recovery.
struct IndexMaintenance: ~Copyable {
    var derivation: IndexDerivation<FieldNumbers>
    /// Of the automatic indexes.
    private(set) var state: IndexState
    var declared: DeclaredIndexes
    var groups: OverriddenGroups
    /// What all was before the last change, should that come to nothing.
    private var statesBefore = IndexStates()
    let latest: LatestReader

    /// Begins with what is stored.
    init(latest: LatestReader) throws(StorageError) {
        let state = try IndexState.stored(latest)
        let declared = try DeclaredIndexes(latest: latest)
        let groups = try OverriddenGroups(latest: latest)
        derivation = IndexDerivation(FieldNumbers(latest: latest))
        self.state = state
        self.declared = declared
        self.groups = groups
        self.latest = latest
    }

    /// Whether commits have entries to keep.
    var keepsEntries: Bool { state.isKept || !declared.isEmpty }

    var states: IndexStates { IndexStates(automatic: state, declared: declared.all, groups: groups) }

    /// Brings the entries of a written document up to date.
    mutating func derive<Sink: IndexEntrySink & ~Copyable>(
        _ document: borrowing IndexedDocument, from old: RawSpan, to new: RawSpan, into sink: inout Sink
    ) throws(StorageError) {
        if state.isKept { try deriveAutomatic(document, from: old, to: new, into: &sink) }
        declared.derive(document, from: old, to: new, into: &sink)
    }

    /// Brings the automatic entries of a document up to date.
    mutating func deriveAutomatic<Sink: IndexEntrySink & ~Copyable>(
        _ document: borrowing IndexedDocument, from old: RawSpan, to new: RawSpan, into sink: inout Sink
    ) throws(StorageError) {
        // Most databases have no overrides: nothing is looked up for them.
        guard !groups.arePlain, let group = groups.group(ofDocument: document.path, in: document.database),
            !group.isPlain
        else { return try derivation.derive(document, from: old, to: new, into: &sink) }
        try derivation.derive(document, from: old, to: new, by: group.rules, group.purpose, into: &sink)
    }

    /// Keys of entries, and of documents.
    private static let entries = (from: [KeySpace.values.rawValue], to: [KeySpace.elements.rawValue + 1])
    private static let documents = (from: [KeySpace.documents.rawValue], to: [KeySpace.documents.rawValue + 1])

    /// A step that was computed and not staged yet.
    struct Step {
        var from: [UInt8]
        var to: [UInt8]
        var next: IndexState
    }

    // MARK: States

    /// The state to be in, given whether indexes are wanted; nil if it is the present one or on the way there.
    func change(isWanted: Bool) throws(StorageError) -> IndexState? {
        if !isWanted { return state.phase == .off ? nil : .off }
        if state.phase != .off { return nil }
        let hasDocuments = try isAnything(in: IndexMaintenance.documents)
        if !hasDocuments, try !isAnything(in: IndexMaintenance.entries) { return IndexState(phase: .complete) }
        return IndexState(phase: .clearing, position: IndexMaintenance.entries.from)
    }

    private func isAnything(in range: (from: [UInt8], to: [UInt8])) throws(StorageError) -> Bool {
        var cursor = try latest.cursor(from: range.from.byteSpan, to: range.to.byteSpan)
        return try cursor.next()
    }

    /// Takes a new state and puts it.
    mutating func enter(_ new: IndexState, into batch: inout MutationBatch) {
        state = new
        var value = WireWriter(capacity: 64)
        new.append(to: &value)
        let key = IndexState.key
        batch.put(key: key.byteSpan, value: value.bytes)
    }

    /// Goes back to the state before the last change, which could not be staged.
    mutating func leave() {
        state = statesBefore.automatic
        declared.restore(statesBefore.declared)
        groups = statesBefore.groups
    }

    /// Remembers what `leave` goes back to.
    mutating func beginChange() {
        statesBefore = states
    }

    // MARK: Steps

    private var work: Work { state.phase == .clearing ? .clear : .buildAutomatic }

    /// Computes the next step.
    /// - Parameter version: the commit that the step will be.
    mutating func nextStep(
        version: CommitVersion, catalogue: inout Catalogue, into batch: inout MutationBatch
    ) throws(StorageError) -> Step {
        let from = state.position
        let isClearing = state.phase == .clearing
        let end = isClearing ? IndexMaintenance.entries.to : IndexMaintenance.documents.to
        let stop = try go(work, from: from, to: end, isBounded: true, catalogue: &catalogue, into: &batch)
        if let stop { return Step(from: from, to: stop, next: IndexState(phase: state.phase, position: stop)) }
        let next =
            isClearing
            ? IndexState(phase: .building, position: IndexMaintenance.documents.from)
            : IndexState(phase: .complete, completeSince: version.microseconds)
        return Step(from: from, to: end, next: next)
    }

    /// Does again what a step did; recovery.
    mutating func repeatStep(
        _ record: borrowing IndexStepRecord, catalogue: inout Catalogue, into batch: inout MutationBatch
    ) throws(StorageError) {
        guard let next = IndexState(record.state) else {
            throw StorageError(.corrupt, "a record about indexes cannot be read")
        }
        if state.hasWork, record.to.byteCount > 0 {
            _ = try go(
                work, from: [UInt8](copying: record.from), to: [UInt8](copying: record.to), isBounded: false,
                catalogue: &catalogue, into: &batch)
        }
        enter(next, into: &batch)
    }
}
