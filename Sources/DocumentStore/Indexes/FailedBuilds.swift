// Index builds that cannot continue: which, why, and when they are tried again.
//
//     a step fails ──► other builds continue ──► the step is tried again ──► it succeeds: the build continues
//                            ▲                        │
//                            └──── it fails ──────────┘      after 1 s, 2 s, 4 s ... 64 s
//
// Nothing about it is stored: after a restart the step is tried at once.

internal import Basics
internal import Indexing
internal import Storage
internal import Synchronization

/// What the steps of an index build are about.
enum IndexBuild: Hashable, Sendable {
    /// The entries of all fields without an override.
    case automatic
    case declared(database: UInt32, number: UInt64, isDropped: Bool)
    /// The entries of the fields of a collection group; those of all groups have the database 0.
    case group(database: UInt32, collectionID: [UInt8])

    init(_ index: DeclaredIndex) {
        self = .declared(
            database: index.database, number: index.number, isDropped: index.state.phase == .clearing)
    }

    init(_ group: GroupFields) { self = .group(database: group.database, collectionID: group.idBytes) }
}

/// The index builds whose last step has failed. Thread-safe; the commit thread alone changes it.
final class FailedBuilds: Sendable {
    private struct Failure {
        let message: String
        let attempts: Int
        /// By the elapsed time.
        let retryMilliseconds: UInt64
    }

    private static let firstPauseMilliseconds: UInt64 = 1_000
    private static let doublingsMax = 6

    private let failures = Mutex<[IndexBuild: Failure]>([:])

    /// Whether a failure is due to the build's documents or entries, and not to the store as a whole.
    static func isDue(_ error: StorageError) -> Bool {
        switch error.code {
        case .corrupt, .keyTooLong, .valueTooLong, .inputOutput: true
        default: false
        }
    }

    var count: Int { failures.withLock { $0.count } }

    /// Why the last step of a build failed; nil if it did not.
    func message(of build: IndexBuild) -> String? { failures.withLock { $0[build]?.message } }

    func note(_ message: String, of build: IndexBuild, nowMilliseconds: UInt64) {
        failures.withLock { failures in
            let attempts = failures[build]?.attempts ?? 0
            let pause = Self.firstPauseMilliseconds << UInt64(min(attempts, Self.doublingsMax))
            failures[build] = Failure(
                message: message, attempts: attempts + 1, retryMilliseconds: nowMilliseconds + pause)
        }
    }

    /// A step of a build has succeeded.
    func forget(_ build: IndexBuild) { failures.withLock { $0[build] = nil } }

    /// Forgets the builds that are not among `builds` any more.
    ///
    /// - Returns: those that are not to be tried yet, and when the first of them is.
    func paused(
        among builds: @autoclosure () -> [IndexBuild], nowMilliseconds: UInt64
    ) -> (builds: Set<IndexBuild>, untilMilliseconds: UInt64) {
        failures.withLock { failures in
            if failures.isEmpty { return ([], 0) }
            let present = Set(builds())
            failures = failures.filter { present.contains($0.key) }
            let paused = failures.filter { $0.value.retryMilliseconds > nowMilliseconds }
            return (Set(paused.keys), paused.values.map(\.retryMilliseconds).min() ?? 0)
        }
    }
}

extension IndexStates {
    /// A build as the log of a server names it.
    func description(of build: IndexBuild) -> String {
        switch build {
        case .automatic: return "the automatic indexes"
        case .declared(let database, let number, _):
            let index = declared.index(number, in: database)
            return "the index \(index?.shape.json ?? String(number))"
        case .group(let database, let id):
            return database == 0
                ? "the entries of the fields of all collections"
                : "the entries of the fields of \(String(decoding: id, as: UTF8.self))"
        }
    }
}
