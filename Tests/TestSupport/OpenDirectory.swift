// A copy of a directory that a process writes to.

import Foundation

/// Copies the data directory of an open store as it is at one moment: what a crash at this moment would leave.
///
/// If a file comes, goes, or gets another size or content meanwhile, the copy is made again.
/// - Throws: ``WaitedTooLong`` if the directory changes all the time.
package func copyOpenDirectory(_ source: String, to target: String) throws {
    let files = FileManager.default
    try waitUntil("the directory is copied") {
        try? files.removeItem(atPath: target)
        do {
            let before = try entries(of: source)
            try files.createDirectory(atPath: target, withIntermediateDirectories: true)
            for (path, entry) in before.sorted(by: { $0.key < $1.key }) {
                // `copyItem` does not end if a file becomes shorter while it is copied.
                if entry.isDirectory {
                    try files.createDirectory(atPath: "\(target)/\(path)", withIntermediateDirectories: true)
                } else {
                    let bytes = try Data(contentsOf: URL(filePath: "\(source)/\(path)"))
                    try bytes.write(to: URL(filePath: "\(target)/\(path)"))
                }
            }
            return try entries(of: source) == before
        } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
            return false
        }
    }
}

private struct DirectoryEntry: Equatable {
    let isDirectory: Bool
    let inode: Int?
    let bytes: Int?
    let changed: Date?
}

/// What is below a directory, by its path there.
private func entries(of directory: String) throws -> [String: DirectoryEntry] {
    let files = FileManager.default
    var found: [String: DirectoryEntry] = [:]
    for path in try files.subpathsOfDirectory(atPath: directory) {
        let attributes = try files.attributesOfItem(atPath: "\(directory)/\(path)")
        found[path] = DirectoryEntry(
            isDirectory: attributes[.type] as? FileAttributeType == .typeDirectory,
            inode: attributes[.systemFileNumber] as? Int, bytes: attributes[.size] as? Int,
            changed: attributes[.modificationDate] as? Date)
    }
    return found
}
