// A directory that lives as long as its test.

import Foundation

/// A new empty directory, removed with everything in it when the last reference goes.
package final class TemporaryDirectory: Sendable {
    /// What the directory is on.
    package enum Medium: Sendable {
        /// What the system's temporary directory is on: a disk as a rule.
        case disk
        /// Memory, so that syncs take no time, if the system has a tmpfs at `/dev/shm` with enough room; else the same.
        case memory

        private static let bytesNeeded = 1 << 30

        fileprivate var root: URL {
            self == .memory && Self.hasMemory
                ? URL(filePath: "/dev/shm", directoryHint: .isDirectory) : FileManager.default.temporaryDirectory
        }

        private static let hasMemory: Bool = {
            let mounts = (try? String(contentsOfFile: "/proc/mounts", encoding: .utf8)) ?? ""
            var status = statvfs()
            return mounts.contains(" /dev/shm tmpfs ") && statvfs("/dev/shm", &status) == 0
                && Int(status.f_bavail) * Int(status.f_frsize) >= bytesNeeded && access("/dev/shm", W_OK) == 0
        }()
    }

    /// Absolute path, without a slash at the end.
    package let path: String

    /// - Parameter name: the beginning of its name.
    package init(_ name: String = "hearth-test", on medium: Medium = .memory) {
        let template = medium.root.appendingPathComponent("\(name)-\(UUID().uuidString)")
        path = template.path
        do {
            try FileManager.default.createDirectory(at: template, withIntermediateDirectories: true)
        } catch {
            fatalError("cannot create \(path): \(error)")
        }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of something in the directory.
    package func path(of name: String) -> String { "\(path)/\(name)" }
}
