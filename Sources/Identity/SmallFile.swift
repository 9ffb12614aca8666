// Files of settings: read whole within a bound, replaced whole, private where they have secrets.

internal import Basics
internal import FileSystem
internal import Glibc
package import Storage

package enum SmallFile {
    /// Differs once a file has been replaced or changed.
    struct Version: Equatable {
        private let device: UInt64
        private let number: UInt64
        private let byteCount: Int64
        private let seconds: Int64
        private let nanoseconds: Int64

        /// nil if there is no such file.
        init?(_ path: String) {
            var found = stat()
            guard unsafe stat(path, &found) == 0 else { return nil }
            device = UInt64(found.st_dev)
            number = UInt64(found.st_ino)
            byteCount = Int64(found.st_size)
            seconds = Int64(found.st_mtim.tv_sec)
            nanoseconds = Int64(found.st_mtim.tv_nsec)
        }
    }

    /// The bytes of a file.
    ///
    /// - Parameter isPrivate: whether a file that others may read or write is refused.
    /// - Throws: `inputOutput`, for a file of more than `bytesMax` bytes too.
    package static func read(_ path: String, bytesMax: Int, isPrivate: Bool = false) throws(StorageError) -> [UInt8] {
        // A named pipe would wait for a writer.
        let file = try File(path, flags: O_RDONLY | O_NONBLOCK)
        if isPrivate { try file.checkPrivate() }
        let buffer = HeapBuffer(capacity: bytesMax + 1)
        let count = try unsafe file.read(into: buffer.all, at: 0)
        if count > bytesMax { throw StorageError(.inputOutput, "\(path) has more than \(bytesMax) bytes") }
        return unsafe [UInt8](UnsafeRawBufferPointer(rebasing: buffer.all[..<count]))
    }

    /// Replaces a file, for its owner alone: afterwards it has the old bytes or the new ones, also after a power cut.
    package static func replace(_ path: String, _ text: String) throws(StorageError) {
        // Another process may replace it at the same time.
        try Directory.replaceFile(path, with: text, workPath: "\(path).\(getpid()).new")
    }

    /// Calls `body` while no other process does for the same directory.
    ///
    /// - Throws: `inputOutput` if another one holds the lock for five seconds.
    static func locked<Output>(
        besides path: String, _ body: () throws -> Output
    ) throws -> Output {
        let directory = try File(Directory.parent(of: path), flags: O_RDONLY | O_DIRECTORY)
        var attempts = 500
        while try !directory.tryLock() {
            attempts -= 1
            guard attempts > 0 else { throw StorageError(.inputOutput, "another process is changing \(path)") }
            // Ten milliseconds.
            usleep(10_000)
        }
        defer { directory.unlock() }
        return try body()
    }
}
