// A copy of a directory that a process writes to.

import Foundation
import Glibc

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
                if entry.isDirectory {
                    try files.createDirectory(atPath: "\(target)/\(path)", withIntermediateDirectories: true)
                } else {
                    try copyData("\(source)/\(path)", to: "\(target)/\(path)")
                }
            }
            return try entries(of: source) == before
        } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
            return false
        }
    }
}

/// SEEK_DATA and SEEK_HOLE, which the module Glibc lacks.
private let (seekData, seekHole): (Int32, Int32) = (3, 4)

/// Copies what is written of a file, which ends here also if it becomes shorter meanwhile. Most of the log and of the
/// files of runs is allocated and not written: the copy has holes there, which read as zeros too.
private func copyData(_ source: String, to target: String) throws {
    let input = try FileHandle(forReadingFrom: URL(filePath: source))
    try Data().write(to: URL(filePath: target))
    let output = try FileHandle(forWritingTo: URL(filePath: target))
    try output.truncate(atOffset: try input.seekToEnd())
    var end: off_t = 0
    while true {
        let start = lseek(input.fileDescriptor, end, seekData)
        if start < 0 { break }
        end = lseek(input.fileDescriptor, start, seekHole)
        if end <= start { break }
        try input.seek(toOffset: UInt64(start))
        try output.seek(toOffset: UInt64(start))
        try output.write(contentsOf: input.read(upToCount: Int(end - start)) ?? Data())
    }
    try input.close()
    try output.close()
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
