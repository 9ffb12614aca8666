package import Storage
internal import Synchronization

/// Disk space that is given back when a small file must be written on a full disk: what takes rights away has to be
/// durable then too. Thread-safe.
///
/// It has no space before ``lend(in:_:)``.
package final class SpareSpace: Sendable {
    /// A closure in a structure: a lock whose state is a closure wraps it in another one at each access.
    private struct Lender: Sendable {
        var checkPlace: (@Sendable () throws(StorageError) -> Void)?
        var release: (@Sendable (_ bytes: Int) -> Bool)?
    }

    private let lender = Mutex(Lender())

    /// Another process may take what is given back before the file does.
    private static let attemptsMax = 16
    /// What a file takes besides its bytes: its last block, and what its directory and its inode need.
    private static let bytesBesides = 16 << 10

    package init() {}

    /// Takes the space from `release` from now on.
    ///
    /// - Parameters:
    ///   - checkPlace: asked before each write, throws if the directory of the files was moved away: another one may be
    ///     in its place, and gets nothing. See ``LockedPlace``.
    ///   - release: gives back some bytes, and returns whether there were so many.
    ///
    /// Both may be called on any thread.
    package func lend(
        in checkPlace: (@Sendable () throws(StorageError) -> Void)? = nil,
        _ release: @escaping @Sendable (_ bytes: Int) -> Bool
    ) {
        lender.withLock { $0 = Lender(checkPlace: checkPlace, release: release) }
    }

    /// Gives back some bytes.
    ///
    /// - Returns: false if there are not so many.
    package func release(_ bytes: Int) -> Bool {
        let release = lender.withLock { $0 }.release
        return release?(bytes) ?? false
    }

    /// Calls `write`, and again with more space as long as the disk is full and there is some.
    ///
    /// - Parameter bytes: that the file will have.
    /// - Throws: what the last attempt throws; `inputOutput` without one if the directory was moved away.
    package func writing<Output>(
        _ bytes: Int, _ write: () throws(StorageError) -> Output
    ) throws(StorageError) -> Output {
        try lender.withLock { $0 }.checkPlace?()
        for _ in 0..<Self.attemptsMax {
            do throws(StorageError) {
                return try write()
            } catch {
                guard error.code == .full, release(bytes + Self.bytesBesides) else { throw error }
            }
        }
        return try write()
    }
}
