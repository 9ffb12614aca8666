package import Foundation

/// The checkout that the tests were built from.
package enum Repository {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// - Parameter path: of a file or folder, from the root of the checkout.
    package static func url(_ path: String) -> URL { root.appending(path: path) }

    /// The saved inputs of a fuzz target, in the order of their names.
    package static func corpus(_ target: String) throws -> [(name: String, bytes: [UInt8])] {
        let folder = url("Tests/Fuzz/Corpus/\(target)")
        return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map {
            ($0, [UInt8](try Data(contentsOf: folder.appending(path: $0))))
        }
    }

    /// The interpreter that has the official client: `HEARTH_PYTHON`, or that of the environment that
    /// `Tools/install-dependencies --tests` makes.
    package static var python: String {
        ProcessInfo.processInfo.environment["HEARTH_PYTHON"] ?? url(".venv/bin/python").path
    }
}
