// Runs made of lists of entries, and what they should answer.

import EngineTestSupport
import Storage
import TestSupport

@testable import EmbeddedEngine

/// A run of several files, open.
final class TestRun {
    let files: [RunFile]
    let slices: RunSlices
    private let memory: UnsafeMutablePointer<RunSlice>
    private let bound: UnsafeMutableRawBufferPointer

    /// Writes the entries, which are in order, to files of at most `entriesPerFile` and the rest of a key.
    convenience init(
        _ entries: [RunEntry], in directory: String, number: UInt64, entriesPerFile: Int = .max, lowerBound: Bytes = [],
        scannedSpaces: ClosedRange<UInt8>? = nil, kind: RunKind = .entries, latestOnly: Set<UInt8> = []
    ) throws {
        var files: [RunFile] = []
        var rest = entries[...]
        while !rest.isEmpty {
            var count = min(rest.count, entriesPerFile)
            while count < rest.count, rest[rest.startIndex + count].key == rest[rest.startIndex + count - 1].key {
                count += 1
            }
            let number = number + UInt64(files.count)
            try Self.write(
                Array(rest.prefix(count)), in: directory, number: number, kind: kind, latestOnly: latestOnly,
                scannedSpaces: scannedSpaces)
            files.append(try RunFile(directory: directory, number: number, kind: kind))
            rest = rest.dropFirst(count)
        }
        self.init(files, lowerBound: lowerBound)
    }

    /// - Parameter lowerBound: that of the first file.
    init(_ files: [RunFile], lowerBound: Bytes = []) {
        self.files = files
        bound = .allocate(byteCount: max(lowerBound.count, 1), alignment: 1)
        bound.copyBytes(from: lowerBound)
        memory = .allocate(capacity: max(files.count, 1))
        for (index, file) in files.enumerated() {
            let bytes = UnsafeRawBufferPointer(rebasing: bound[..<(index == 0 ? lowerBound.count : 0)])
            (memory + index).initialize(
                to: RunSlice(part: file.part, lowerBound: bytes, highestKey: file.part.highestKey))
        }
        slices = RunSlices(start: memory, count: files.count)
    }

    deinit {
        memory.deallocate()
        bound.deallocate()
    }

    static func write(
        _ entries: [RunEntry], in directory: String, number: UInt64, kind: RunKind = .entries,
        latestOnly: Set<UInt8> = [], scannedSpaces: ClosedRange<UInt8>? = nil, hashSeed: UInt64 = 0
    ) throws {
        let versions = entries.map(\.version)
        var writer = try RunWriter(
            directory: directory, number: number, kind: kind, versions: versions.min()!...versions.max()!,
            latestOnly: LatestOnlySpaces(latestOnly), scannedSpaces: scannedSpaces, hashSeed: hashSeed)
        for (index, entry) in entries.enumerated() {
            let isSame = index > 0 && entries[index - 1].key == entry.key
            try add(entry, to: &writer, superseded: isSame ? entries[index - 1].version : nil)
        }
        _ = try writer.finish()
    }

    private static func add(_ entry: RunEntry, to writer: inout RunWriter, superseded: UInt64?) throws {
        // Closures cannot take the writer along, so the pointers are used here.
        let key = entry.key.withUnsafeBytes { UnsafeRawBufferPointer($0) }
        guard let value = entry.value else {
            return try writer.add(key, version: entry.version, nil, superseded: superseded)
        }
        let bytes = value.withUnsafeBytes { UnsafeRawBufferPointer($0) }
        try writer.add(key, version: entry.version, bytes, superseded: superseded)
        withExtendedLifetime((entry, value)) {}
    }

    /// All entries of all files.
    func entries() throws -> [RunEntry] {
        var entries: [RunEntry] = []
        var position = RunPosition(slices)
        try position.moveToStart()
        while position.isAtEntry {
            let entry = position.entry
            try position.confirm(entry.value)
            let key = Bytes(position.firstKey.prefix(entry.shared)) + Bytes(entry.suffix)
            entries.append(RunEntry(key: key, version: position.version(entry), value: entry.value.map { Bytes($0) }))
            try position.next()
        }
        return entries
    }

    /// What a version sees from `bound` on.
    func walk(
        _ version: UInt64, from bound: Bytes?, _ direction: ScanDirection, inclusive: Bool = true,
        latestOnly: Set<UInt8> = [], end: Bytes = []
    ) throws -> [RunEntry] {
        let endBytes = UnsafeMutableRawBufferPointer.allocate(byteCount: end.count, alignment: 1)
        defer { endBytes.deallocate() }
        endBytes.copyBytes(from: end)
        let buffer = UnsafeMutableRawPointer.allocate(byteCount: RunKey.bufferBytes, alignment: 16)
        defer { buffer.deallocate() }
        var cursor = RunCursor(
            slices, version: version, latestOnly: LatestOnlySpaces(latestOnly), buffer: buffer,
            end: end.isEmpty ? nil : UnsafeRawBufferPointer(endBytes))
        let key = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bound?.count ?? 0), alignment: 1)
        defer { key.deallocate() }
        key.copyBytes(from: bound ?? [])
        let place = bound.map { UnsafeRawBufferPointer(rebasing: key[..<$0.count]) }
        if direction == .forward {
            try cursor.seekForward(place)
        } else {
            try cursor.seekBackward(place, inclusive: inclusive)
        }
        var found: [RunEntry] = []
        while cursor.isAtEntry {
            found.append(
                RunEntry(key: Bytes(cursor.key), version: cursor.entryVersion, value: cursor.value.map { Bytes($0) }))
            try cursor.step(direction)
        }
        return found
    }

    /// The newest entry of a key that is not above the version.
    func find(_ key: Bytes, _ version: UInt64) throws -> RunEntry? {
        let index = key.withUnsafeBytes { slices.slice(of: $0) }
        guard index < slices.count else { return nil }
        let part = slices[index].part
        let found = try key.withUnsafeBytes { try part.find($0, hash: RunHashIndex.hash($0, seed: 0), atMost: version) }
        return found.map { found in
            RunEntry(key: key, version: found.version, value: found.bytes.map { Bytes($0) })
        }
    }
}

/// Makes entries of few keys with many versions, long keys, long values and tombstones.
struct EntryGenerator {
    var random: SeededGenerator

    mutating func key() -> Bytes {
        switch random.below(6) {
        case 0: return Bytes("\(random.below(40))".utf8)
        case 1: return Bytes(repeating: UInt8(random.below(3)), count: 1 + random.below(500))
        case 2: return Bytes(repeating: 7, count: 250 + random.below(12)) + [UInt8(random.below(4))]
        default: return Bytes("collection/\(random.below(9))/document \(random.below(300))".utf8)
        }
    }

    mutating func entries(_ count: Int, versions: ClosedRange<UInt64>) -> [RunEntry] {
        var entries: [RunEntry] = []
        while entries.count < count {
            let key = key()
            let copies = random.oneIn(30) ? 1 + random.below(400) : 1 + random.below(3)
            for _ in 0..<copies {
                let length = random.oneIn(40) ? random.below(30_000) : random.below(80)
                let value = random.oneIn(5) ? nil : Bytes(repeating: UInt8(random.below(256)), count: length)
                let version = versions.lowerBound + UInt64(random.below(versions.count))
                entries.append(RunEntry(key: key, version: version, value: value))
            }
        }
        return Self.ordered(entries)
    }

    /// In order, one entry for each key and version.
    static func ordered(_ entries: [RunEntry]) -> [RunEntry] {
        var ordered: [RunEntry] = []
        for entry in entries.sorted(by: RunEntry.isBefore)
        where ordered.last.map({ $0.key != entry.key || $0.version != entry.version }) ?? true {
            ordered.append(entry)
        }
        return ordered
    }
}
