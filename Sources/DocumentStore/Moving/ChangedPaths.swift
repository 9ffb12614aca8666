// Which documents of a database have changed since its copy began: what the source of a move sends again.

internal import Basics
internal import Synchronization

/// The paths of changed documents, for databases that are being copied. Thread-safe.
///
/// The commit thread notes a document before its commit is visible. So a reader that takes a published version first
/// and asks afterwards finds every change up to this version. A commit that came to nothing may be noted too, which
/// only costs that its document is sent again.
final class ChangedPaths: Sendable {
    private struct Database {
        /// Every change above this version is noted.
        var since: UInt64
        /// The version of the last change of each document.
        var paths: [[UInt8]: UInt64] = [:]
        var byteCount = 0
        /// Too many have changed.
        var isLost = false
    }

    private let state = Monitor<[UInt32: Database]>([:])
    private let databases = Atomic<Int>(0)

    /// Memory for the paths of one database, about, in bytes.
    private static let bytesMax = 128 << 20
    private static let bytesPerPath = 96

    // MARK: The commit thread

    /// Whether any changes are noted. Asked after the commit has taken its version.
    var isWanted: Bool {
        yieldPoint()
        return databases.load(ordering: .sequentiallyConsistent) > 0
    }

    func note(_ path: RawSpan, in database: UInt32, version: UInt64) {
        state.withLock { state in
            // Taken out, so that it is changed in place.
            guard var noted = state.removeValue(forKey: database) else { return }
            if !noted.isLost, noted.paths.updateValue(version, forKey: [UInt8](copying: path)) == nil {
                noted.byteCount += path.byteCount + Self.bytesPerPath
            }
            if noted.byteCount > Self.bytesMax {
                noted.isLost = true
                noted.paths = [:]
            }
            state[database] = noted
        }
    }

    // MARK: The source of a move

    /// Notes the changes of a database from now on.
    ///
    /// - Parameter newestAssigned: the highest version that a commit has taken.
    /// - Returns: a version above which every change is noted.
    func begin(_ database: UInt32, newestAssigned: () -> UInt64) -> UInt64 {
        end(database)
        yieldPoint()
        // A commit takes its version and then asks whether it is noted; here the notes begin, and then the version is
        // read. So either the commit is noted, or its version is not above the answer.
        databases.add(1, ordering: .sequentiallyConsistent)
        return state.withLock { state in
            let since = newestAssigned()
            state[database] = Database(since: since)
            return since
        }
    }

    /// What has changed up to a published version need not be noted. The commits up to the answer of
    /// ``begin(_:newestAssigned:)`` are not in flight any more.
    func settle(_ database: UInt32, at version: UInt64) {
        state.withLock { $0[database]?.since = version }
    }

    func end(_ database: UInt32) {
        let wasNoted = state.withLock { $0.removeValue(forKey: database) != nil }
        if wasNoted { databases.subtract(1, ordering: .sequentiallyConsistent) }
    }

    /// Whether every change of a database above a version is noted.
    func cover(_ database: UInt32, since version: UInt64) -> Bool {
        state.withLock { $0[database].map { !$0.isLost && $0.since <= version } ?? false }
    }

    /// How many documents have changed since they were taken.
    func count(in database: UInt32) -> Int { state.withLock { $0[database]?.paths.count ?? 0 } }

    /// Takes the documents whose last change is visible.
    ///
    /// - Parameter version: a published one. Later changes stay noted.
    func take(in database: UInt32, through version: UInt64) -> [[UInt8]] {
        state.withLock { state in
            guard var noted = state.removeValue(forKey: database) else { return [] }
            defer { state[database] = noted }
            var taken: [[UInt8]] = []
            var left: [[UInt8]: UInt64] = [:]
            for (path, changed) in noted.paths {
                if changed > version { left[path] = changed } else { taken.append(path) }
            }
            noted.since = max(noted.since, version)
            noted.paths = left
            noted.byteCount = left.keys.reduce(0) { $0 + $1.count + Self.bytesPerPath }
            return taken
        }
    }
}
