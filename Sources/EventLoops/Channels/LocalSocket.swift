import Glibc

/// Stream sockets with a path in the file system, for programs on the same machine.
package enum LocalSocket {
    /// A socket that is bound to the path and listens. It replaces an existing file: the caller owns the path.
    ///
    /// Only the owner of the process may connect: the file is created with the permissions 0600.
    package static func listen(at path: String) throws(SocketError) -> Int32 {
        _ = unsafe unlink(path)
        let descriptor = try make(path, "listen on")
        // `bind` creates the file; a `chmod` after it would leave a moment in which others may connect.
        let mask = umask(0o177)
        let result = unsafe with(path) { unsafe bind(descriptor, $0, $1) }
        umask(mask)
        guard result == 0, Glibc.listen(descriptor, 16) == 0 else {
            throw failure("listen on", path, closing: descriptor)
        }
        return descriptor
    }

    /// A socket that is connected to the one that listens at the path.
    package static func connect(to path: String) throws(SocketError) -> Int32 {
        let descriptor = try make(path, "connect to")
        guard unsafe with(path, { unsafe Glibc.connect(descriptor, $0, $1) }) == 0 else {
            throw failure("connect to", path, closing: descriptor)
        }
        return descriptor
    }

    /// Removes the file of a socket.
    package static func remove(_ path: String) { _ = unsafe unlink(path) }

    private static func make(_ path: String, _ attempt: String) throws(SocketError) -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw failure(attempt, path, closing: nil) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        return descriptor
    }

    private static func failure(_ attempt: String, _ path: String, closing descriptor: Int32?) -> SocketError {
        let code = errno
        if let descriptor { closeDescriptor(descriptor) }
        return SocketError(attempt: "\(attempt) \(path)", code: code, reason: unsafe String(cString: strerror(code)))
    }

    /// Bytes of a socket's path, without the NUL at its end.
    private static let pathBytesMax = 107

    /// Lends the address of a path. A longer path is reached through a descriptor of its directory.
    private static func with(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        if path.utf8.count <= pathBytesMax { return unsafe withAddress(path, body) }
        let (directory, name) = split(path)
        let descriptor = unsafe open(directory, O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return -1 }
        defer { closeDescriptor(descriptor) }
        return unsafe withAddress("/proc/self/fd/\(descriptor)/\(name)", body)
    }

    private static func split(_ path: String) -> (directory: String, name: Substring) {
        let name = path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        return (String(path.dropLast(name.count)), name)
    }

    private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) {
            unsafe $0.copyBytes(from: path.utf8.prefix(pathBytesMax))
        }
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
