// What the engine's tests share: files to damage, and commits whose records can be replayed.

import EmbeddedEngine
import Glibc
package import MemoryEngine
package import Storage
package import StorageEngines
import TestSupport
package import Testing

package typealias Bytes = [UInt8]

/// Files, for tests that damage them.
package enum Files {
    package static func names(in path: String) -> [String] {
        guard let stream = opendir(path) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    package static func read(_ path: String) -> Bytes {
        guard let bytes = readIfThere(path) else { preconditionFailure("cannot open \(path)") }
        return bytes
    }

    private static func readIfThere(_ path: String) -> Bytes? {
        let descriptor = open(path, O_RDONLY)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        fstat(descriptor, &status)
        var bytes = Bytes(repeating: 0, count: Int(status.st_size))
        let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        precondition(count == bytes.count)
        return bytes
    }

    package static func write(_ bytes: Bytes, to path: String) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        precondition(descriptor >= 0, "cannot open \(path)")
        defer { close(descriptor) }
        let count = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        precondition(count == bytes.count)
    }

    /// Removes a file, or a directory with everything in it.
    package static func remove(_ path: String) {
        if unlink(path) == 0 { return }
        for name in names(in: path) { remove(path + "/" + name) }
        rmdir(path)
    }

    /// Copies a directory, as a kill would leave it. A file may go meanwhile: a log segment that is being prepared or
    /// recycled, or a file of a run that has been merged.
    package static func copyTree(_ source: String, to target: String) {
        let manifest = source + "/runs/MANIFEST"
        guard let before = readIfThere(manifest) else { return copyOnce(source, to: target) }
        // What a kill leaves belongs to one moment: a merge must not end while files are copied.
        var known = before
        while true {
            copyOnce(source, to: target)
            let after = read(manifest)
            if after == known { return }
            known = after
            remove(target)
        }
    }

    private static func copyOnce(_ source: String, to target: String) {
        mkdir(target, 0o700)
        for name in names(in: source) where source + "/" + name != target {
            let from = source + "/" + name
            var status = stat()
            guard !name.hasSuffix(".prepare"), lstat(from, &status) == 0 else { continue }
            if status.st_mode & S_IFMT == S_IFDIR {
                copyOnce(from, to: target + "/" + name)
            } else if let bytes = readIfThere(from) {
                write(bytes, to: target + "/" + name)
            }
        }
    }
}

/// A put or a delete, as tests see it.
package struct Change: Equatable, Sendable {
    package var key: Bytes
    package var value: Bytes?

    package init(key: Bytes, value: Bytes?) {
        self.key = key
        self.value = value
    }

    package static func put(_ key: String, _ value: String) -> Change {
        Change(key: Bytes(key.utf8), value: Bytes(value.utf8))
    }
    package static func delete(_ key: String) -> Change { Change(key: Bytes(key.utf8), value: nil) }
}

/// Log records that hold the changes themselves.
package enum Record {
    package static func encode(_ changes: [Change]) -> Bytes {
        var record = Bytes()
        for change in changes {
            record.append(change.value == nil ? 0 : 1)
            append(UInt32(change.key.count), to: &record)
            record += change.key
            append(UInt32(change.value?.count ?? 0), to: &record)
            record += change.value ?? []
        }
        return record
    }

    package static func decode(_ record: RawSpan) -> [Change] {
        let bytes = record.withUnsafeBytes { Bytes($0) }
        var changes: [Change] = []
        var offset = 0
        func length() -> Int {
            defer { offset += 4 }
            return (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
        }
        func take(_ count: Int) -> Bytes {
            defer { offset += count }
            return Bytes(bytes[offset..<(offset + count)])
        }
        while offset < bytes.count {
            let isPut = take(1) == [1]
            let key = take(length())
            let value = take(length())
            changes.append(Change(key: key, value: isPut ? value : nil))
        }
        return changes
    }

    private static func append(_ length: UInt32, to record: inout Bytes) {
        for shift in stride(from: UInt32(0), to: 32, by: 8) {
            record.append(UInt8(truncatingIfNeeded: length >> shift))
        }
    }
}

extension MutationBatch {
    package mutating func add(_ changes: [Change]) {
        for change in changes {
            if let value = change.value {
                put(key: change.key.span.bytes, value: value.span.bytes)
            } else {
                delete(key: change.key.span.bytes)
            }
        }
    }
}

/// An open engine with its writer.
package final class Store {
    package let engine: StorageEngine
    package let writer: EngineWriter
    /// The versions that recovery replayed.
    package let replayed: [UInt64]

    package init(_ directory: String, _ options: EngineOptions = .small, volume: MemoryVolume? = nil) throws {
        var replayed: [UInt64] = []
        engine = try StorageEngine.open(directory: directory, volume: volume, options: options) {
            version, record, batch, _ in
            replayed.append(version.microseconds)
            batch.add(Record.decode(record))
        }
        self.replayed = replayed
        writer = try engine.makeWriter()
    }

    package func stage(_ version: UInt64, _ changes: [Change], mayUseReserve: Bool = false) throws(StorageError) {
        var batch = MutationBatch()
        batch.add(changes)
        try writer.stage(
            version: CommitVersion(microseconds: version), record: Record.encode(changes).span.bytes, mutations: batch,
            mayUseReserve: mayUseReserve)
    }

    /// A commit that only deletes, and so may use the reserve.
    package func delete(_ version: UInt64, _ key: String) throws(StorageError) {
        try stage(version, [.delete(key)], mayUseReserve: true)
        try writer.commitGroup()
    }

    package func commit(_ version: UInt64, _ changes: [Change]) throws(StorageError) {
        try stage(version, changes)
        try writer.commitGroup()
    }

    package func get(_ key: String, at version: UInt64? = nil) throws -> String? {
        let reader = try engine.makeReader()
        return try reader.snapshot(at: version.map { CommitVersion(microseconds: $0) }).text(key)
    }

    package func scan(
        at version: UInt64? = nil, from lower: Bytes? = nil, to upper: Bytes? = nil,
        _ direction: ScanDirection = .forward
    ) throws -> [Entry] {
        let reader = try engine.makeReader()
        return try reader.snapshot(at: version.map { CommitVersion(microseconds: $0) }).entries(lower, upper, direction)
    }
}

/// An entry that a cursor went to.
package struct Entry: Equatable, CustomStringConvertible {
    package var key: Bytes
    package var value: Bytes
    package var version: UInt64

    package init(key: Bytes, value: Bytes, version: UInt64) {
        self.key = key
        self.value = value
        self.version = version
    }

    package var description: String {
        "\(String(decoding: key, as: UTF8.self))=\(String(decoding: value, as: UTF8.self))@\(version)"
    }
}

extension LatestReader {
    package func bytes(_ key: Bytes) throws -> Bytes? {
        guard let value = try value(forKey: key.span.bytes) else { return nil }
        return value.bytes.withUnsafeBytes { Bytes($0) }
    }

    package func entries(_ lower: Bytes, _ upper: Bytes) throws -> [Entry] {
        var cursor = try cursor(from: lower.span.bytes, to: upper.span.bytes)
        var entries: [Entry] = []
        while try cursor.next() { entries.append(cursor.entry) }
        return entries
    }
}

extension EngineSnapshot {
    package borrowing func text(_ key: String) throws -> String? {
        try bytes(Bytes(key.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    package borrowing func bytes(_ key: Bytes) throws -> Bytes? {
        guard let value = try value(forKey: key.span.bytes) else { return nil }
        return value.bytes.withUnsafeBytes { Bytes($0) }
    }

    package borrowing func entries(
        _ lower: Bytes? = nil, _ upper: Bytes? = nil, _ direction: ScanDirection = .forward
    ) throws -> [Entry] {
        // Spans cannot go through `map`; an open end is a bound that no key passes.
        let low = lower ?? []
        let high = upper ?? Bytes(repeating: 255, count: EngineLimits.keyBytesMax)
        var cursor = try cursor(from: low.span.bytes, to: high.span.bytes, direction: direction)
        var entries: [Entry] = []
        while try cursor.next() { entries.append(cursor.entry) }
        return entries
    }
}

extension EngineCursor {
    package var entry: Entry {
        Entry(
            key: key.withUnsafeBytes { Bytes($0) }, value: value.withUnsafeBytes { Bytes($0) },
            version: version.microseconds)
    }
}

extension EngineOptions {
    /// Everything small and nothing by itself: tests say when to checkpoint.
    package static var small: EngineOptions {
        var options = EngineOptions()
        options.memtableBytesMax = 1 << 20
        options.logSegmentBytes = 64 << 10
        options.diskReserveBytes = 256 << 10
        options.runBytesMax = 1 << 30
        options.runFileBytesMax = 64 << 10
        options.idleCheckpointMicroseconds = 0
        options.retentionMicroseconds = 1 << 60
        return options
    }
}

/// The engine's own verdict on a directory that is closed; every test that wrote to a disk ends with it.
package func expectClean(_ directory: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let report = try EngineCheck.run(directory: directory)
    expectEqual(report.problems, [], sourceLocation: sourceLocation)
}
