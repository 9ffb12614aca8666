// The base of a replica: the files of a store as of a moment, read by the source and written by the replica.

internal import Basics
internal import EmbeddedEngine
internal import FileSystem
internal import Glibc
package import Storage

/// The files of a store as of a moment, on its source. The store is served meanwhile. Used by one thread.
///
/// The files of runs are shared with the store, so this takes no space until merges replace them.
package final class StoreBase {
    /// A file, by its path in a data directory.
    package struct Part {
        package let path: String
        package let byteCount: Int
        /// Where it lies.
        package let place: String
    }

    /// In the order in which a directory is made of them: it is complete with the last.
    package let parts: [Part]
    /// All commits up to here are in the files, and none after it.
    package let version: CommitVersion
    /// History superseded up to here is not in them.
    package let horizon: CommitVersion
    private let fork: TemporaryFork

    /// - Throws: as ``DocumentStore/fork(to:)``.
    package convenience init(of store: DocumentStore) throws {
        try self.init(of: store.configuration.directory) { _ = try store.fork(to: $0) }
    }

    /// - Parameters:
    ///   - directory: of the store.
    ///   - makeFork: makes a fork of it at a path.
    package init(of directory: String, _ makeFork: (String) throws -> Void) throws {
        let fork = try TemporaryFork(within: directory)
        do {
            try makeFork(fork.directory)
            var parts: [Part] = []
            for folder in BaseDirectory.folders where Directory.exists("\(fork.directory)/\(folder)") {
                for name in try Directory.names(in: "\(fork.directory)/\(folder)").sorted() {
                    parts.append(try Self.part("\(folder)/\(name)", in: fork.directory))
                }
            }
            // The history of the replica is that of its source.
            parts.append(try Self.part(BaseDirectory.timeline, in: directory))
            parts.append(try Self.part(BaseDirectory.format, in: fork.directory))
            self.parts = parts
            version = try ClusterFile.checkpoint(of: fork.directory) ?? .zero
            horizon = try ClusterFile.horizon(of: fork.directory) ?? .zero
            self.fork = fork
        } catch {
            fork.remove()
            throw error
        }
    }

    deinit { fork.remove() }

    /// Bytes of all files.
    package var byteCount: Int { parts.reduce(0) { $0 + $1.byteCount } }

    /// Lends the bytes of a file, in pieces.
    package func read(_ part: Part, _ body: ([UInt8]) throws -> Void) throws {
        let file = try File(part.place, flags: O_RDONLY)
        var offset = 0
        while offset < part.byteCount {
            let length = min(Self.pieceBytes, part.byteCount - offset)
            var count = 0
            let piece = unsafe try [UInt8](unsafeUninitializedCapacity: length) { buffer, filled in
                count = unsafe try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
                filled = count
            }
            guard count == length else {
                throw StorageError(.inputOutput, "the file ends before its end", file: part.place)
            }
            try body(piece)
            offset += length
        }
    }

    private static let pieceBytes = 256 << 10

    private static func part(_ path: String, in directory: String) throws(StorageError) -> Part {
        let place = "\(directory)/\(path)"
        return Part(path: path, byteCount: try File(place, flags: O_RDONLY).byteCount(), place: place)
    }
}

/// What the files of a base are called.
enum BaseDirectory {
    static let folders = ["runs", "rules"]
    static let timeline = "TIMELINE"
    static let format = "FORMAT"

    /// Whether a path that a source sends is one of a base.
    static func admits(_ path: String) -> Bool {
        if path == timeline || path == format { return true }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, folders.contains(String(parts[0])) else { return false }
        let name = parts[1].utf8
        return !name.isEmpty && name.count <= 100 && name.first != UInt8(ascii: ".")
            && name.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}

/// Writes the files of a base to a folder of a data directory, and puts them in the place of what is there. No process
/// can open the directory meanwhile. Used by one thread.
package final class BaseReceiver {
    private let directory: String
    private let lock: DirectoryLock
    /// Where the files are written.
    package let partial: String
    private var file: File?
    private var offset = 0
    /// Bytes received.
    package private(set) var byteCount = 0

    /// Removes what an earlier attempt has left.
    /// - Parameter directory: may be missing.
    /// - Throws: `locked` if a process uses the directory.
    package init(directory: String) throws {
        self.directory = Directory.resolved(directory)
        partial = BasePlacing.received(in: self.directory)
        lock = try DirectoryLock(self.directory)
        try BasePlacing.settleLocked(self.directory)
        try Directory.create(partial)
        for folder in BaseDirectory.folders + ["log"] { try Directory.create("\(partial)/\(folder)") }
    }

    /// Begins a file.
    /// - Throws: `refused` for a path that is not one of a base.
    package func begin(_ path: String) throws {
        try endFile()
        guard BaseDirectory.admits(path) else {
            throw StorageError(.refused, "the source sends a file that does not belong to a base")
        }
        file = try File("\(partial)/\(path)", flags: O_RDWR | O_CREAT | O_EXCL)
        offset = 0
    }

    /// Adds bytes to the file.
    package func append(_ bytes: [UInt8]) throws {
        guard let file else { throw StorageError(.refused, "the source sends bytes without a file") }
        unsafe try bytes.withUnsafeBytes { unsafe try file.write($0, at: offset) }
        offset += bytes.count
        byteCount += bytes.count
    }

    /// The base is complete: it takes the place of the directory's contents, except for what belongs to the server.
    /// - Parameters:
    ///   - source: of the replica, for its marker.
    ///   - add: adds to what belongs to the server. It gets the data directory if that has something of the kind,
    ///     otherwise the one that takes its place.
    package func complete(source: String, _ add: (String) throws -> Void) throws {
        try complete {
            try ReplicaFile.write(source: source, in: $0, successorOf: directory)
            try add(Directory.exists("\(directory)/\(CompanionFiles.serversOwn)") ? directory : $0)
        }
    }

    /// The same for a directory that is marked in another way. If the process ends meanwhile,
    /// ``BasePlacing/settle(_:)`` continues.
    /// - Parameters:
    ///   - kept: names of what stays if the directory has it, instead of what the base has.
    ///   - mark: gets the directory before it takes its place.
    package func complete(keeping kept: Set<String> = [], marking mark: (String) throws -> Void) throws {
        defer { lock.unlock() }
        try endFile()
        guard Directory.exists("\(partial)/\(BaseDirectory.format)") else {
            throw StorageError(.refused, "the source ended a base before its last file")
        }
        try mark(partial)
        let kept = kept.filter { Directory.exists("\(directory)/\($0)") }
        for name in kept { try Directory.removeAll("\(partial)/\(name)") }
        for folder in BaseDirectory.folders where !kept.contains(folder) { try Directory.sync("\(partial)/\(folder)") }
        try Directory.sync(partial)
        try BasePlacing.place(in: directory, keeping: kept)
        try Directory.syncName(of: directory)
    }

    private func endFile() throws(StorageError) {
        try file?.sync()
        file = nil
    }
}

/// The file REPLICA of a data directory: whose replica it is. A directory without it has an independent store.
///
/// The file has up to three lines: the source; the number of ``successor(in:)``, or nothing; ``timeMax(in:)``.
package enum ReplicaFile {
    private static let name = "REPLICA"

    /// The source in the directory's file; nil if the directory is not a replica.
    package static func source(in directory: String) throws -> String? {
        try lines(in: directory).map { $0.first ?? "" }
    }

    /// The number under which the replica takes the place of its source: the same at each attempt, and durable before
    /// the first. One program at a time may ask.
    package static func successor(in directory: String) throws -> UInt64 {
        let lines = try lines(in: directory) ?? []
        if let number = number(lines, 1) { return number }
        let number = UInt64.random(in: 1...UInt64.max)
        try write(source: lines.first ?? "", successor: number, timeMax: self.number(lines, 2), in: directory)
        return number
    }

    /// The replica has answered no read at a later time, in microseconds since 1970; 0 if it has answered none.
    package static func timeMax(in directory: String) throws -> UInt64 {
        number(try lines(in: directory) ?? [], 2) ?? 0
    }

    /// Notes that the replica may answer reads at times up to one, durably. One program at a time may do so.
    /// - Throws: `full`, `inputOutput`.
    package static func note(timeMax: UInt64, in directory: String) throws(StorageError) {
        let lines = try lines(in: directory) ?? []
        try write(source: lines.first ?? "", successor: number(lines, 1), timeMax: timeMax, in: directory)
    }

    private static func number(_ lines: [String], _ line: Int) -> UInt64? {
        lines.count > line ? UInt64(lines[line]) : nil
    }

    private static func write(
        source: String, successor: UInt64?, timeMax: UInt64?, in directory: String
    ) throws(StorageError) {
        try Directory.replaceFile("\(directory)/\(name)", with: text(source, successor, timeMax))
    }

    private static func text(_ source: String, _ successor: UInt64?, _ timeMax: UInt64?) -> String {
        let (successor, timeMax) = (successor.map(String.init) ?? "", timeMax.map(String.init) ?? "")
        return "\(source)\n\(successor)\n\(timeMax)\n"
    }

    private static func lines(in directory: String) throws(StorageError) -> [String]? {
        let path = "\(directory)/\(name)"
        guard try Directory.isThere(path) else { return nil }
        let file = try File(path, flags: O_RDONLY)
        let buffer = HeapBuffer(capacity: 512)
        let count = unsafe try file.read(into: buffer.all, at: 0)
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: buffer.all[..<count])
        let text = unsafe String(decoding: bytes, as: UTF8.self)
        return text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// - Parameter other: the directory that this one takes the place of. Its numbers stay: the source may have stepped
    ///   down for it, and clients have the times of its reads.
    static func write(source: String, in directory: String, successorOf other: String) throws {
        let lines = try lines(in: other) ?? []
        let file = try File("\(directory)/\(name)", flags: O_RDWR | O_CREAT | O_TRUNC)
        try file.write(string: text(source, number(lines, 1), number(lines, 2)))
        try file.sync()
    }

    /// Makes the directory of a replica one with an independent store, durably. Nobody may have it open.
    ///
    /// - Parameter beginsTimeline: whether its history may differ from that of the source from now on at times that
    ///   clients have seen: their resume tokens are not valid then.
    package static func remove(from directory: String, beginsTimeline: Bool) throws {
        let timeline = "\(directory)/\(BaseDirectory.timeline)"
        if beginsTimeline, Directory.exists(timeline) { try Directory.removeFile(timeline) }
        try Directory.removeFile("\(directory)/\(name)")
        try Directory.sync(directory)
    }
}

/// The file SUPERSEDED of a data directory: another server has taken the place of its server.
package enum SupersededFile {
    private static let name = "SUPERSEDED"

    /// Whether the directory has the file.
    package static func exists(in directory: String) -> Bool { Directory.exists("\(directory)/\(name)") }

    /// Takes the space of the file, so that a full disk shows before the server has stepped down.
    package static func prepare(in directory: String) throws(StorageError) {
        let file = try File(workPath(in: directory), flags: O_RDWR | O_CREAT | O_TRUNC)
        try file.write(
            string: "a replica was promoted, or a cluster has the store; remove this file to serve the directory all "
                + "the same\n")
        try file.sync()
    }

    /// Gives up what was prepared.
    package static func discard(in directory: String) { try? Directory.removeFile(workPath(in: directory)) }

    /// Makes the file, durably.
    package static func write(in directory: String) throws(StorageError) {
        if !Directory.exists(workPath(in: directory)) { try prepare(in: directory) }
        try Directory.rename(workPath(in: directory), to: "\(directory)/\(name)")
        try Directory.sync(directory)
    }

    private static func workPath(in directory: String) -> String { "\(directory)/\(name).new" }
}
