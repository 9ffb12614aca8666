// A small separate disk for a test, to be filled up.

import Foundation

/// A tmpfs of a given size, unmounted when the last reference goes. Mounting needs root, or a user namespace with a
/// mount namespace (`unshare --user --map-root-user --mount`).
package final class TemporaryDisk: Sendable {
    package struct MountError: Error, CustomStringConvertible {
        package let description: String
    }

    private let directory = TemporaryDirectory("disk")
    package var path: String { directory.path }

    /// - Parameter filesMax: how many files and directories have a place; nil for as many as the system allows.
    package init(megabytes: Int, filesMax: Int? = nil) throws {
        // The root of the disk counts too.
        let files = filesMax.map { ",nr_inodes=\($0 + 1)" } ?? ""
        try Self.run("mount", ["-t", "tmpfs", "-o", "size=\(megabytes)m\(files)", "hearth-test", directory.path])
    }

    deinit { try? Self.run("umount", ["--lazy", directory.path]) }

    /// The path of something on the disk.
    package func path(of name: String) -> String { "\(path)/\(name)" }

    /// From now on nothing can be written.
    package func makeReadOnly() throws { try Self.run("mount", ["-o", "remount,ro", directory.path]) }

    private static func run(_ command: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [command] + arguments
        try process.run()
        process.waitUntilExit()
        if process.terminationStatus != 0 {
            throw MountError(
                description:
                    "\(command) \(arguments.joined(separator: " ")) failed: a test disk needs the right to mount")
        }
    }

    /// Writes a file until the disk has no block left.
    package func fill(_ name: String = "ballast") throws {
        let descriptor = open(path(of: name), O_WRONLY | O_CREAT | O_APPEND, 0o600)
        precondition(descriptor >= 0, "cannot open the ballast")
        defer { close(descriptor) }
        let piece = [UInt8](repeating: 1, count: 4096)
        while write(descriptor, piece, piece.count) > 0 {}
        if errno != ENOSPC {
            throw MountError(description: "the disk cannot be filled: \(String(cString: strerror(errno)))")
        }
    }

    package func remove(_ name: String = "ballast") throws {
        try FileManager.default.removeItem(atPath: path(of: name))
    }
}
