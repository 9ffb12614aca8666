import Glibc

/// A file that is written from its start, or from its end, on. Closed when the last reference goes.
final class OutputFile {
    private let path: String
    private let descriptor: Int32

    /// Opens a file, and makes it if it is missing.
    ///
    /// - Parameter flags: for `open(2)`, beside those for that.
    init(_ path: String, flags: Int32) throws(CommandFailure) {
        self.path = path
        descriptor = Self.open(path, flags)
        if descriptor < 0 { throw Self.failure(path) }
    }

    /// Makes a file. Nil where no file can be made: its directory takes none, or no name that is so long.
    ///
    /// - Throws: if it cannot be made at present, for example on a full disk, or there is one.
    init?(newAt path: String) throws(CommandFailure) {
        self.path = path
        descriptor = Self.open(path, O_EXCL)
        if descriptor >= 0 { return }
        if [EACCES, EPERM, EROFS, ENOENT, ENAMETOOLONG].contains(errno) { return nil }
        throw Self.failure(path)
    }

    private static func open(_ path: String, _ flags: Int32) -> Int32 {
        Glibc.open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0o666)
    }

    deinit { close(descriptor) }

    /// Whether the file has no bytes.
    var isEmpty: Bool {
        get throws(CommandFailure) {
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw Self.failure(path) }
            return status.st_size == 0
        }
    }

    /// Writes all of the bytes.
    func write(_ bytes: [UInt8]) throws(CommandFailure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno != EINTR { throw Self.failure(path) }
            rest = rest.dropFirst(max(count, 0))
        }
    }

    /// Waits for the lock of the file (flock(2)), which the process has until it closes the file. Without effect where
    /// the file system has no locks.
    /// - Returns: false if the file has lost its name meanwhile.
    func lock() -> Bool {
        while flock(descriptor, LOCK_EX) != 0, errno == EINTR {}
        var status = stat()
        return fstat(descriptor, &status) != 0 || status.st_nlink > 0
    }

    private static func failure(_ path: String) -> CommandFailure {
        CommandFailure("cannot write \(path): \(String(cString: strerror(errno)))")
    }
}
