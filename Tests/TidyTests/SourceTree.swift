// The Swift files of the repository, and what is found in them.

import Foundation

/// One Swift file of the repository.
struct SourceFile {
    /// Relative to the repository, as in `Sources/DocumentModel/Limits.swift`.
    let path: String
    let lines: [Substring]

    /// The first two folders of the path: the target that a file belongs to, nearly always.
    var part: String { path.split(separator: "/").prefix(2).joined(separator: "/") }
}

/// A place that breaks a rule.
struct Violation: CustomStringConvertible {
    let file: SourceFile
    /// From 0.
    let index: Int

    var description: String { "\(file.path):\(index + 1): \(file.lines[index].drop { $0 == " " }.prefix(100))" }
}

enum SourceTree {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The Swift files below a folder of the repository, in the order of their paths.
    static func files(below folder: String) throws -> [SourceFile] {
        let start = root.appending(path: folder)
        guard let walk = FileManager.default.enumerator(at: start, includingPropertiesForKeys: nil) else { return [] }
        var files: [SourceFile] = []
        for case let file as URL in walk where file.pathExtension == "swift" {
            // A build folder of a package within the tree holds no sources of ours.
            if file.path.contains("/.build") { continue }
            let text = try String(contentsOf: file, encoding: .utf8)
            let path = String(file.path.dropFirst(root.path.count).drop { $0 == "/" })
            files.append(SourceFile(path: path, lines: text.split(separator: "\n", omittingEmptySubsequences: false)))
        }
        return files.sorted { $0.path < $1.path }
    }
}
