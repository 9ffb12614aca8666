import Glibc

/// A small file that is read as a whole.
enum InputFile {
    /// Bytes of a file; the largest `firestore.indexes.json` that makes sense is far smaller.
    private static let bytesMax = 16 << 20

    /// The contents of a file; `nil` if there is none.
    static func contentsIfPresent(of path: String) throws(CommandFailure) -> [UInt8]? {
        if access(path, F_OK) != 0, errno == ENOENT { return nil }
        return try contents(of: path)
    }

    /// The contents of a file.
    static func contents(of path: String) throws(CommandFailure) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(descriptor, &part, part.count)
            if count < 0, errno == EINTR { continue }
            if count < 0 { throw unreadable(path) }
            if count == 0 { return bytes }
            bytes += part[..<count]
            if bytes.count > bytesMax { throw CommandFailure("\(path) has more than \(bytesMax >> 20) MiB") }
        }
    }

    /// The contents of a file with a secret. Warns on standard error if other users may read or change it.
    ///
    /// - Parameter name: what the file has.
    static func secret(_ name: String, in path: String) throws(CommandFailure) -> [UInt8] {
        let secret = try contents(of: path)
        if let warning = AccessWarning.ofSecret(name, in: path) { CommandRouter.complain(warning.line) }
        return secret
    }

    /// The error of the last system call.
    private static func unreadable(_ path: String) -> CommandFailure {
        CommandFailure("cannot read \(path): \(unsafe String(cString: strerror(errno)))")
    }
}
