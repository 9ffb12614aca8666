// Secrets and directories that other users of the machine may read or change.

import FileSystem
import FirestoreService

/// A warning about the permissions of a file. It is used all the same: systems of packages and of containers give files
/// to groups.
struct AccessWarning {
    private let event: StaticString
    private let path: String
    private let mode: UInt32
    private let message: String

    /// - Parameter bits: permissions of which none may be given.
    private init?(_ event: StaticString, _ path: String, forbidding bits: UInt32, _ message: String) {
        mode = Directory.status(of: path).mode
        guard mode & bits != 0 else { return nil }
        (self.event, self.path, self.message) = (event, path, message)
    }

    /// That anyone may read a secret, or that others than its owner may change it; nil if neither is so.
    ///
    /// - Parameter name: what the file has.
    static func ofSecret(_ name: String, in path: String) -> AccessWarning? {
        AccessWarning(
            "key_not_private", path, forbidding: 0o026, "other users may read or change \(name): chmod 600 \(path)")
    }

    /// That others than its owner may write in a data directory; nil if they may not.
    static func ofData(in path: String) -> AccessWarning? {
        AccessWarning(
            "data_not_private", path, forbidding: 0o022,
            "other users may write there and replace what the server keeps: chmod go-w \(path)")
    }

    /// A line for people.
    var line: String { "warning: \(path) has mode \(String(mode, radix: 8)): \(message)" }

    func write(to log: Log) {
        log(.warning, event, ["path": path, "mode": String(mode, radix: 8), "message": message])
    }
}
