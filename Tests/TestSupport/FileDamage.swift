// Damage of a file, and its repair while the file is open.

import Foundation

/// Flipped bits in the files of a directory. Mended in place, so that a process that has the files open sees it.
package struct FileDamage {
    package struct NotFound: Error {}

    private var places: [(path: String, offset: UInt64, byte: UInt8)] = []

    /// Flips a bit of each place that has a text.
    ///
    /// - Throws: `NotFound` if no file has it.
    package init(of text: String, in directory: String) throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: directory) {
            let path = "\(directory)/\(name)"
            guard let bytes = FileManager.default.contents(atPath: path) else { continue }
            var rest = bytes.startIndex..<bytes.endIndex
            while let found = bytes.range(of: Data(text.utf8), in: rest) {
                places.append((path, UInt64(found.lowerBound), bytes[found.lowerBound]))
                rest = found.upperBound..<bytes.endIndex
            }
        }
        if places.isEmpty { throw NotFound() }
        for place in places { try Self.write(place.byte ^ 1, at: place.offset, of: place.path) }
    }

    package func mend() throws { for place in places { try Self.write(place.byte, at: place.offset, of: place.path) } }

    private static func write(_ byte: UInt8, at offset: UInt64, of path: String) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.seek(toOffset: offset)
        try file.write(contentsOf: [byte])
        try file.close()
    }
}
