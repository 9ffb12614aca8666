package import Storage

/// The place of a directory whose lock this process has. The directory may be moved away, and another one with another
/// lock may take its place: who makes, replaces or removes a file by its path asks here first.
package struct LockedPlace: Sendable {
    private let lock: File?

    /// - Parameter lock: the file in the directory; nil for a directory that nobody moves.
    package init(_ lock: File?) { self.lock = lock }

    /// - Throws: `inputOutput` if the directory is not in its place; it may come back.
    package func check() throws(StorageError) {
        guard let lock, try !lock.isNamed(lock.path) else { return }
        throw StorageError(
            .inputOutput, "the data directory was moved or removed while it was in use",
            file: Directory.parent(of: lock.path), remedy: "end this server, or move the directory back")
    }

    /// Whether the directory is in its place.
    package var isIntact: Bool { (try? check()) != nil }
}
