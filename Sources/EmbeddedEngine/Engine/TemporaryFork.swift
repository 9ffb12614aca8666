internal import FileSystem
internal import Glibc
package import Storage
internal import Synchronization

/// The place of a fork that ends with its user. Thread-safe.
///
/// It lies beside the source or within it, where files can be shared, and is removed by ``remove()``. What a process
/// leaves that was killed is removed when the next such place is made:
///
///     SOURCE.fork-PID-COUNT/LOCK    locked by the user
///     SOURCE.fork-PID-COUNT/data    the fork
package final class TemporaryFork: Sendable {
    /// Where the fork belongs; it does not exist yet.
    package var directory: String { "\(place)/\(Self.forkName)" }

    private let place: String
    private let lock: File

    private static let forkName = "data"
    private static let counter = Atomic<Int>(0)

    /// A place beside the source.
    /// - Throws: `inputOutput` if no directory can be made there.
    package convenience init(of source: String) throws(StorageError) {
        try self.init(prefix: Directory.resolved(source) + ".fork-")
    }

    /// A place within the source, which may be a mount point.
    /// - Throws: `inputOutput` if no directory can be made there.
    package convenience init(within source: String) throws(StorageError) {
        try self.init(prefix: Self.prefix(within: source))
    }

    private init(prefix: String) throws(StorageError) {
        try Self.removeAbandoned(prefix)
        place = "\(prefix)\(getpid())-\(Self.counter.add(1, ordering: .relaxed).newValue)"
        lock = try DirectoryFormat.lock(place)
    }

    private static func prefix(within source: String) -> String { Directory.resolved(source) + "/fork-" }

    /// Refuses a target that is the source or lies in it, except for a fork that ends with its user.
    ///
    /// - Parameter what: as for `Directory.checkApart`.
    /// - Throws: `inputOutput`.
    package static func checkApart(_ source: String, _ target: String, for what: String) throws(StorageError) {
        let place = Directory.parent(of: Directory.resolved(target))
        if isName(place, prefix(within: source)) { return }
        try Directory.checkApart(source, target, for: what)
    }

    /// Removes the fork. Nothing may use it any more.
    package func remove() {
        lock.unlock()
        try? Directory.removeAll(place)
    }

    /// Removes places that no process uses.
    private static func removeAbandoned(_ prefix: String) throws(StorageError) {
        let parent = Directory.parent(of: prefix)
        for name in try Directory.names(in: parent) {
            let path = parent == "/" ? "/\(name)" : "\(parent)/\(name)"
            guard isName(path, prefix), hasFork(path) else { continue }
            // One that is in use, or another user's, stays.
            try? DirectoryCopy.removeUnfinished(path)
        }
    }

    /// Whether a path is the prefix and two numbers.
    private static func isName(_ path: String, _ prefix: String) -> Bool {
        guard path.hasPrefix(prefix) else { return false }
        let numbers = path.dropFirst(prefix.count).split(separator: "-", omittingEmptySubsequences: false)
        return numbers.count == 2 && numbers.allSatisfy { UInt64($0) != nil }
    }

    /// Whether a directory has nothing but what a place has. A data directory may be called `data.fork-2031-05`.
    private static func hasFork(_ path: String) -> Bool {
        let names = try? Directory.names(in: path)
        return names?.allSatisfy { [forkName, DirectoryFormat.lockName].contains($0) } ?? false
    }
}
