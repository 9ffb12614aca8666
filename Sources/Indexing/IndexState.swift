// How far the automatic indexes are.
//
//     01 'i'    ->    | phase, 1 | complete since, 8 | position ... |
//
//     off ──(wanted)──► clearing ──► building ──► complete        a new store begins complete
//      ▲                                             │
//      └──────────────────(not wanted)───────────────┘
//
// What is there from an earlier time is cleared before anything is built. From the first step of building on, every
// commit keeps the entries of what it writes, so that entries are complete when the walk over the documents comes to
// its end. Readers use them at versions from then on. Every change of phase and every step goes through the log.

package import Basics
internal import DocumentModel
package import Storage
package import StorageEngines
internal import StoreFormat
internal import Synchronization

/// How far an index, or the index entries of a group of fields, is.
package struct IndexState: Equatable, Sendable {
    /// With the byte that stands for it on disk.
    package enum Phase: UInt8 {
        /// There are no entries that are kept; some may be left over.
        case off = 0
        /// Leftovers are being removed; `position` is the first key that was not looked at.
        case clearing = 1
        /// Entries of documents are being added; `position` is the first document that was not looked at.
        case building = 2
        /// Every document has its entries.
        case complete = 3
    }

    package var phase: Phase
    /// Entries are complete at this version and later ones; in phase `complete`.
    var completeSince: UInt64 = 0
    /// Where the next step begins, as a key; see ``Phase``. Empty before the first step.
    package var position: [UInt8] = []

    package static let off = IndexState(phase: .off)

    /// Whether commits keep entries.
    package var isKept: Bool { phase == .building || phase == .complete }

    /// Whether there are steps to take.
    package var hasWork: Bool { phase == .clearing || phase == .building }

    /// Whether a reader at this version finds the entries of every document.
    package func isComplete(at version: CommitVersion) -> Bool {
        phase == .complete && version.microseconds >= completeSince
    }

    // MARK: Layout

    /// The key of the state of the automatic indexes.
    package static let key: [UInt8] = [KeySpace.meta.rawValue, UInt8(ascii: "i")]

    /// Appends the state as it is stored: the phase, `completeSince` (little-endian), the position.
    package func append(to writer: inout ByteBuffer) {
        writer.append(byte: phase.rawValue)
        writer.append(littleEndian: completeSince)
        writer.append(position)
    }

    package init(phase: Phase, completeSince: UInt64 = 0, position: [UInt8] = []) {
        self.phase = phase
        self.completeSince = completeSince
        self.position = position
    }

    /// Reads what `append` wrote; nil when it is something else.
    package init?(_ bytes: RawSpan) {
        guard bytes.byteCount >= 9, let phase = Phase(rawValue: bytes[byteAt: 0]) else { return nil }
        self.phase = phase
        // In bounds by the check above.
        completeSince = UInt64(littleEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: 1, as: UInt64.self))
        position = [UInt8](copying: bytes.extracting(9..<bytes.byteCount))
    }

    /// The state as it is stored; `off` when there is none.
    package static func stored(_ latest: LatestReader) throws(StorageError) -> IndexState {
        let key = key
        guard let stored = try latest.value(forKey: key.byteSpan) else { return .off }
        guard let state = IndexState(stored.bytes) else {
            throw StorageError(.corrupt, "the state of the indexes cannot be read")
        }
        return state
    }
}

/// How far all indexes of a store are.
package struct IndexStates: Sendable {
    /// The entries of all fields without an override.
    package var automatic = IndexState.off
    package var declared = IndexDefinitions()
    /// The collection groups with field overrides.
    package var groups = OverriddenGroups()

    package init(
        automatic: IndexState = .off, declared: IndexDefinitions = IndexDefinitions(),
        groups: OverriddenGroups = OverriddenGroups()
    ) {
        self.automatic = automatic
        self.declared = declared
        self.groups = groups
    }

    /// Whether there are steps to take.
    var hasWork: Bool { automatic.hasWork || declared.haveWork || groups.hasWork }

    /// What a database declares, with the changes that are under way.
    package func declaration(of database: UInt32) -> IndexDeclaration {
        let overrides = groups.groups(in: database).flatMap(\.declared)
        let implied = Set(overrides.flatMap(\.shapes))
        let present = declared.indexes(in: database).filter { $0.state.phase != .clearing }
        return IndexDeclaration(
            indexes: present.map(\.shape).filter { !implied.contains($0) }, fieldOverrides: overrides)
    }

    /// The fields of a collection as queries at a version may use them.
    package func fields(ofCollection path: RawSpan, in database: UInt32, at version: CommitVersion) -> IndexedFields {
        if !automatic.isComplete(at: version) { return .none }
        let group = groups.group(RelativePath.lastSegment(path), in: database)
        return (group ?? groups.common).indexed(at: version)
    }
}

/// The states as readers see them. Thread-safe.
///
/// The commit thread sets them when a change is staged; a reader whose version is below the change's finds by
/// `isComplete` that it does not count yet.
package final class SharedIndexStates: Sendable {
    private let state = Mutex((states: IndexStates(), changes: 0))

    package init() {}

    /// The states with every change that was staged, published or not.
    package var current: IndexStates { state.withLock { $0.states } }

    /// Whether there are steps to take.
    package var hasWork: Bool { state.withLock { $0.states.hasWork } }

    /// Changes since the store was opened.
    var changes: Int { state.withLock { $0.changes } }

    /// Replaces the states. Called by the commit thread.
    package func set(_ states: IndexStates) { state.withLock { $0 = (states, $0.changes + 1) } }
}
