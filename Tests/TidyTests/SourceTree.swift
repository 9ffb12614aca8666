// The files of the repository, and the violations in them.

import Foundation
import Synchronization

/// One source file or page of the repository.
struct SourceFile {
    /// Relative to the repository, as in `Sources/DocumentModel/Limits.swift`.
    let path: String
    let lines: [Substring]

    /// The first two components of the path: in most cases the target of the file.
    var part: String { path.split(separator: "/").prefix(2).joined(separator: "/") }

    /// The folder that has the file.
    var folder: String { path.split(separator: "/").dropLast().joined(separator: "/") }
}

/// A place that breaks a rule.
struct Violation: CustomStringConvertible {
    let file: SourceFile
    /// From 0.
    let index: Int

    var description: String { "\(file.path):\(index + 1): \(file.lines[index].drop { $0 == " " }.prefix(100))" }
}

enum SourceTree {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The files of a kind below a folder of the repository, in the order of their paths; a file is taken by itself.
    static func files(below folder: String, extension fileExtension: String) throws -> [SourceFile] {
        let start = root.appending(path: folder)
        if start.pathExtension == fileExtension { return [try file(start)] }
        guard let walk = FileManager.default.enumerator(at: start, includingPropertiesForKeys: nil) else { return [] }
        var files: [SourceFile] = []
        for case let url as URL in walk where url.pathExtension == fileExtension {
            // A build folder of a package within the tree has no sources of this project.
            if url.path.contains("/.build") { continue }
            files.append(try file(url))
        }
        return files.sorted { $0.path < $1.path }
    }

    /// The files that were read, by their paths: each rule looks at most of them.
    private static let read = Mutex<[String: SourceFile]>([:])

    private static func file(_ url: URL) throws -> SourceFile {
        if let file = read.withLock({ $0[url.path] }) { return file }
        let text = try String(contentsOf: url, encoding: .utf8)
        let path = String(url.path.dropFirst(root.path.count).drop { $0 == "/" })
        let file = SourceFile(path: path, lines: text.split(separator: "\n", omittingEmptySubsequences: false))
        read.withLock { $0[url.path] = file }
        return file
    }
}
