// The Unix socket of `hearth serve` for services on the same machine.

import EventLoops
import Glibc
import Server

/// The flags of the Unix socket, and what they mean.
enum ServeSocket {
    static let path = Flag<String>(
        "socket", "PATH", required: false,
        help: """
            A Unix socket to listen on too, for services on this machine: all protocols and the rights of the port, \
            without TLS.
            """)
    static let mode = Flag(
        "socket-mode", "MODE", default: "0660",
        help: "Permissions of the file of --socket, octal: who may write to it may connect."
    ) { permissions($0) == nil ? "an octal number of at most 0777, such as 0660" : nil }
    static let group = Flag<String>(
        "socket-group", "GROUP", required: false,
        help: "The group of the file of --socket, a name or a number, of which this user must be a member."
    ) { number(ofGroup: $0) == nil ? "a group of this machine" : nil }

    static let flags: [any FlagDeclaration] = [path, mode, group]

    /// The socket that a command line asks for; nil without one.
    static func options(_ arguments: ParsedArguments) -> UnixSocketOptions? {
        arguments.value(of: path).map { path in
            UnixSocketOptions(
                path: PathWords.absolute(path),
                permissions: SocketPermissions(
                    mode: permissions(arguments[mode]) ?? 0o600,
                    group: arguments.value(of: group).flatMap(number(ofGroup:))))
        }
    }

    private static func permissions(_ text: String) -> UInt32? {
        UInt32(text, radix: 8).flatMap { $0 <= 0o777 ? $0 : nil }
    }

    private static func number(ofGroup name: String) -> UInt32? {
        if let number = UInt32(name) { return number }
        return getgrnam(name).map { $0.pointee.gr_gid }
    }
}
