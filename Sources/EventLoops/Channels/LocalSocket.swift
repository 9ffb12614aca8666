import Glibc

/// Who may connect to a socket in the file system.
package struct SocketPermissions: Equatable, Sendable {
    /// The permissions of the file: 0600 for its owner alone, 0660 for a group too, 0666 for everyone on the machine.
    package let mode: UInt32
    /// The group of the file; nil for that of the process.
    package let group: UInt32?

    package init(mode: UInt32 = 0o600, group: UInt32? = nil) {
        self.mode = mode
        self.group = group
    }

    /// Gives a file of the mode 0600 these permissions.
    ///
    /// - Returns: false with `errno` if the system does not permit it.
    fileprivate func apply(to path: String) -> Bool {
        if let group, unsafe chown(path, uid_t.max, group) != 0 { return false }
        return unsafe mode == 0o600 || chmod(path, mode) == 0
    }
}

/// The file of a socket that listens, as it was when this was made. The directory may be moved away, and the socket of
/// another process may get the path: that one is not removed.
package struct LocalSocketFile: Sendable {
    private let path: String
    private let identity: Identity?

    private struct Identity: Equatable {
        let device: UInt64
        let number: UInt64

        init?(_ path: String) {
            var status = stat()
            guard unsafe lstat(path, &status) == 0 else { return nil }
            (device, number) = (UInt64(status.st_dev), UInt64(status.st_ino))
        }
    }

    /// - Parameter path: of a socket that listens.
    package init(_ path: String) { (self.path, identity) = (path, Identity(path)) }

    /// Removes the file, if it still has the path.
    package func remove() {
        if identity != nil, Identity(path) == identity { LocalSocket.remove(path) }
    }
}

/// Stream sockets with a path in the file system, for programs on the same machine.
package enum LocalSocket {
    /// A socket that is bound to the path and listens. It replaces an existing file: the caller owns the path.
    ///
    /// - Parameter permissions: who may connect; the owner of the process alone unless given.
    package static func listen(
        at path: String, _ permissions: SocketPermissions = SocketPermissions(), backlog: Int32 = 16
    ) throws(SocketError) -> Int32 {
        _ = unsafe unlink(path)
        let descriptor = try make(path, "listen on")
        // `bind` creates the file, for its owner alone: permissions that are narrowed later would be too late.
        let mask = umask(0o177)
        let isBound = unsafe with(path) { unsafe bind(descriptor, $0, $1) } == 0
        umask(mask)
        guard isBound, permissions.apply(to: path), Glibc.listen(descriptor, backlog) == 0 else {
            let error = failure("listen on", path, closing: descriptor)
            if isBound { remove(path) }
            throw error
        }
        return descriptor
    }

    /// Throws if a server may not take the path: another process listens there, or the file is not a socket. The socket
    /// of a process that has ended may be replaced.
    package static func checkIsFree(_ path: String) throws(SocketError) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw failure("listen on", path, closing: nil, code: EEXIST)
        }
        do throws(SocketError) {
            closeDescriptor(try connect(to: path))
        } catch {
            if error.isNoListener { return }
        }
        throw failure("listen on", path, closing: nil, code: EADDRINUSE)
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
    fileprivate static func remove(_ path: String) { _ = unsafe unlink(path) }

    private static func make(_ path: String, _ attempt: String) throws(SocketError) -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw failure(attempt, path, closing: nil) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        return descriptor
    }

    private static func failure(
        _ attempt: String, _ path: String, closing descriptor: Int32?, code: Int32 = errno
    ) -> SocketError {
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
        let short = "/proc/self/fd/\(descriptor)/\(name)"
        guard short.utf8.count <= pathBytesMax else {
            errno = ENAMETOOLONG
            return -1
        }
        return unsafe withAddress(short, body)
    }

    private static func split(_ path: String) -> (directory: String, name: Substring) {
        let name = path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        return (String(path.dropLast(name.count)), name)
    }

    private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) {
            unsafe $0.copyBytes(from: path.utf8)
        }
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
