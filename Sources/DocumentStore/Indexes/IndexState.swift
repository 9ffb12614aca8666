// How far the automatic indexes are.
//
//     01 'i'    ->    | phase, 1 | complete since, 8 | position ... |
//
//     off ──(wanted)──► clearing ──► building ──► complete        a new store begins complete
//      ▲                                             │
//      └──────────────────(not wanted)───────────────┘
//
// What is there from an earlier time is cleared before anything is built. From the first step of building on, every commit
// keeps the entries of what it writes, so that entries are complete when the walk over the documents comes to its end.
// Readers use them at versions from then on. Every change of phase and every step goes through the log.

internal import DocumentModel
internal import KeyValueStore
internal import Synchronization

struct IndexState: Equatable, Sendable {
    enum Phase: UInt8 {
        /// There are no entries that are kept; some may be left over.
        case off = 0
        /// Leftovers are being removed; `position` is the first key that was not looked at.
        case clearing = 1
        /// Entries of documents are being added; `position` is the first document that was not looked at.
        case building = 2
        case complete = 3
    }

    var phase: Phase
    /// Entries are complete at this version and later ones; in phase `complete`.
    var completeSince: UInt64 = 0
    var position: [UInt8] = []

    static let off = IndexState(phase: .off)

    /// Whether commits keep entries.
    var isKept: Bool { phase == .building || phase == .complete }

    /// Whether there are steps to take.
    var hasWork: Bool { phase == .clearing || phase == .building }

    func isComplete(at version: CommitVersion) -> Bool {
        phase == .complete && version.microseconds >= completeSince
    }

    // MARK: Layout

    static let key: [UInt8] = [KeySpace.meta.rawValue, UInt8(ascii: "i")]

    func append(to writer: inout WireWriter) {
        writer.append(byte: phase.rawValue)
        writer.append(littleEndian: completeSince)
        writer.append(position)
    }

    init(phase: Phase, completeSince: UInt64 = 0, position: [UInt8] = []) {
        self.phase = phase
        self.completeSince = completeSince
        self.position = position
    }

    /// Reads what `append` wrote; nil when it is something else.
    init?(_ bytes: RawSpan) {
        guard bytes.byteCount >= 9, let phase = Phase(rawValue: bytes[byteAt: 0]) else { return nil }
        self.phase = phase
        // In bounds by the check above.
        completeSince = UInt64(littleEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: 1, as: UInt64.self))
        position = [UInt8](copying: bytes.extracting(9..<bytes.byteCount))
    }

    /// The state as it is stored; `off` when there is none.
    static func stored(_ latest: LatestReader) throws(StorageError) -> IndexState {
        let key = key
        guard let stored = try latest.value(forKey: key.byteSpan) else { return .off }
        guard let state = IndexState(stored.bytes) else {
            throw StorageError(.corrupt, "the state of the indexes cannot be read")
        }
        return state
    }
}

/// The state as readers see it. Thread-safe.
///
/// The commit thread sets it when a change is staged; a reader whose version is below the change's finds by `isComplete` that
/// it does not count yet.
final class SharedIndexState: Sendable {
    private struct State {
        var automatic = IndexState.off
        var declared: [DeclaredIndex] = []
        var changes = 0
    }

    private let state = Mutex(State())

    /// Of the automatic indexes.
    var current: IndexState { state.withLock { $0.automatic } }

    /// All declared indexes.
    var declared: [DeclaredIndex] { state.withLock { $0.declared } }

    var hasWork: Bool {
        state.withLock { state in state.automatic.hasWork || state.declared.contains { $0.state.hasWork } }
    }

    /// Changes since the store was opened.
    var changes: Int { state.withLock { $0.changes } }

    func set(_ automatic: IndexState, _ declared: [DeclaredIndex]) {
        state.withLock { $0 = State(automatic: automatic, declared: declared, changes: $0.changes + 1) }
    }
}
