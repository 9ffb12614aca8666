// A directory that lives as long as its test.

import Foundation

/// A new empty directory under the system's temporary directory, removed with everything in it when the last reference
/// goes.
package final class TemporaryDirectory: Sendable {
    /// Absolute path, without a slash at the end.
    package let path: String

    package init(_ name: String = "hearth-test") {
        let template = FileManager.default.temporaryDirectory.appendingPathComponent("\(name)-\(UUID().uuidString)")
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
