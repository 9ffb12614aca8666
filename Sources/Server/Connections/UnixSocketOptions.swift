package import EventLoops

/// A Unix socket that a server listens on beside its port, for services on the same machine.
package struct UnixSocketOptions: Sendable {
    /// The path of the socket's file, which the server removes when it stops.
    package let path: String
    package let permissions: SocketPermissions

    package init(path: String, permissions: SocketPermissions = SocketPermissions()) {
        self.path = path
        self.permissions = permissions
    }
}
