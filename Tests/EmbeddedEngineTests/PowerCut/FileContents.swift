// The bytes of a simulated file, and what a power cut leaves of changes that were not synced.

import EngineTestSupport
import Glibc
import TestSupport

/// A change of a file since its last sync.
enum FileChange {
    case write(Bytes, offset: Int)
    case resize(byteCount: Int)
}

/// The bytes of a file in pages. A page that is missing has zeros only.
struct FileContents: Equatable {
    static let pageBytes = 4096

    private(set) var byteCount = 0
    private(set) var pages: [Int: Bytes] = [:]

    init() {}

    init(_ bytes: Bytes) { apply(.write(bytes, offset: 0)) }

    mutating func apply(_ change: FileChange) {
        switch change {
        case .write(let bytes, let offset):
            copy(bytes[...], to: offset)
            byteCount = max(byteCount, offset + bytes.count)
        case .resize(let newByteCount):
            clear(newByteCount..<max(byteCount, newByteCount))
            byteCount = newByteCount
        }
    }

    /// The bytes of a page that has some.
    func bytes(ofPage page: Int) -> ArraySlice<UInt8> {
        guard let bytes = pages[page] else { return [] }
        return bytes[..<max(0, min(Self.pageBytes, byteCount - page * Self.pageBytes))]
    }

    private static let zeros = Bytes(repeating: 0, count: pageBytes)

    private static func isZero(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.withUnsafeBytes { bytes in
            zeros.withUnsafeBytes { memcmp(bytes.baseAddress!, $0.baseAddress!, bytes.count) == 0 }
        }
    }

    private mutating func copy(_ bytes: ArraySlice<UInt8>, to offset: Int) {
        var start = offset
        var rest = bytes
        while !rest.isEmpty {
            let (page, place) = start.quotientAndRemainder(dividingBy: Self.pageBytes)
            let piece = rest.prefix(Self.pageBytes - place)
            if pages[page] != nil || !Self.isZero(piece) {
                pages[page, default: Bytes(repeating: 0, count: Self.pageBytes)]
                    .replaceSubrange(place..<(place + piece.count), with: piece)
            }
            start += piece.count
            rest = rest.dropFirst(piece.count)
        }
    }

    private mutating func clear(_ range: Range<Int>) {
        for page in pages.keys {
            let start = page * Self.pageBytes
            let cleared = range.clamped(to: start..<(start + Self.pageBytes))
            if cleared.count == Self.pageBytes {
                pages[page] = nil
            } else if !cleared.isEmpty {
                copy(Bytes(repeating: 0, count: cleared.count)[...], to: cleared.lowerBound)
            }
        }
    }

    /// Makes the part of a change that lies in a range. The size stays.
    private mutating func apply(_ change: FileChange, in range: Range<Int>) {
        switch change {
        case .write(let bytes, let offset):
            let part = range.clamped(to: offset..<(offset + bytes.count))
            guard !part.isEmpty else { return }
            copy(bytes[(part.lowerBound - offset)..<(part.upperBound - offset)], to: part.lowerBound)
        case .resize(let byteCount):
            if byteCount < range.upperBound { clear(max(byteCount, range.lowerBound)..<range.upperBound) }
        }
    }

    /// What a power cut may leave: each unit has the bytes after any number of its changes, and the size is one of
    /// those that the file had.
    /// - Parameter unitBytes: what the disk writes as a whole.
    func cut(_ changes: [FileChange], unitBytes: Int, _ random: inout SeededGenerator) -> FileContents {
        var result = self
        var sizes = [byteCount]
        var units: Set<Int> = []
        var newest = self
        for change in changes {
            newest.apply(change)
            sizes.append(newest.byteCount)
            if case .write(let bytes, let offset) = change, !bytes.isEmpty {
                units.formUnion((offset / unitBytes)...((offset + bytes.count - 1) / unitBytes))
            } else {
                for page in pages.keys {
                    units.formUnion((page * Self.pageBytes / unitBytes)..<((page + 1) * Self.pageBytes / unitBytes))
                }
            }
        }
        for unit in units.sorted() {
            let range = (unit * unitBytes)..<((unit + 1) * unitBytes)
            let touching = changes.filter { change in
                guard case .write(let bytes, let offset) = change else { return true }
                return range.overlaps(offset..<(offset + bytes.count))
            }
            for change in touching.prefix(random.below(touching.count + 1)) { result.apply(change, in: range) }
        }
        let size = random.pick(sizes)
        result.clear(size..<max(size, Int.max / 2))
        result.byteCount = size
        return result
    }
}
