// Which group of the log the runs of a directory end with.
//
// A checkpoint writes the place of its last group before it enters the manifest. The file PLACES has the places of the
// last two, so the one that counts after a crash is among them.

internal import Basics
internal import FileSystem
internal import Glibc
package import Replication
package import Storage
internal import Synchronization

/// The places of a data directory that caches a store. Thread-safe.
package final class LogPlaces: Sendable {
    /// A checkpoint and its place.
    private struct Entry: Equatable {
        let checkpoint: UInt64
        let place: LogPlace
    }

    private struct State {
        /// What the file has, the last at the end.
        var written: [Entry] = []
        /// The places since the last checkpoint, in order.
        var recent: [LogPlace] = []
    }

    private let directory: String
    private let state = Mutex(State())

    package static let fileName = "PLACES"

    /// Reads the file of a directory, if there is one.
    /// - Throws: `corrupt`, `inputOutput`.
    package init(directory: String) throws(StorageError) {
        self.directory = directory
        let entries = try Self.read(directory)
        state.withLock { $0.written = entries }
    }

    /// The place of a directory whose runs end with a checkpoint.
    /// - Returns: nil if the file does not have it.
    package func place(ofCheckpoint version: CommitVersion) -> LogPlace? {
        state.withLock { $0.written.last { $0.checkpoint == version.microseconds }?.place }
    }

    /// A group became durable, or is about to be applied.
    package func note(_ place: LogPlace) { state.withLock { $0.recent.append(place) } }

    /// Makes the place of a checkpoint durable.
    package func write(checkpoint version: CommitVersion) throws(StorageError) {
        let version = version.microseconds
        // A group may end with records that derive nothing: then the last version of the runs is an earlier one.
        let entries = state.withLock { state -> [Entry]? in
            if state.written.last?.checkpoint == version { return [] }
            guard let place = state.recent.first(where: { $0.version >= version }) else { return nil }
            return state.written.suffix(1) + [Entry(checkpoint: version, place: place)]
        }
        guard let entries else {
            throw StorageError(.failed, "no group of the log ends with the checkpoint \(version)", file: directory)
        }
        if entries.isEmpty { return }
        try write(entries)
        state.withLock { state in
            state.written = entries
            state.recent.removeAll { $0.version < version }
        }
    }

    /// Makes a file for a directory that is made of a base.
    package static func create(in directory: String, checkpoint version: CommitVersion, at place: LogPlace) throws {
        try write([Entry(checkpoint: version.microseconds, place: place)], in: directory)
    }

    // MARK: The file: a line for each checkpoint, with four numbers

    private func write(_ entries: [Entry]) throws(StorageError) { try Self.write(entries, in: directory) }

    private static func write(_ entries: [Entry], in directory: String) throws(StorageError) {
        let lines = entries.map { entry in
            "\(entry.checkpoint) \(entry.place.sequence) \(entry.place.hash) \(entry.place.version)\n"
        }
        try Directory.replaceFile("\(directory)/\(fileName)", with: lines.joined())
    }

    private static func read(_ directory: String) throws(StorageError) -> [Entry] {
        let path = "\(directory)/\(fileName)"
        guard try Directory.isThere(path) else { return [] }
        let file = try File(path, flags: O_RDONLY)
        let buffer = HeapBuffer(capacity: 1_024)
        let count = unsafe try file.read(into: buffer.all, at: 0)
        let text = unsafe String(decoding: UnsafeRawBufferPointer(rebasing: buffer.all[..<count]), as: UTF8.self)
        var entries: [Entry] = []
        for line in text.split(separator: "\n") {
            let numbers = line.split(separator: " ").compactMap { UInt64($0) }
            guard numbers.count == 4 else {
                throw StorageError(
                    .corrupt, "the file does not have places of a log", file: path,
                    remedy: "remove the directory; the server makes it again from the cluster")
            }
            entries.append(
                Entry(
                    checkpoint: numbers[0],
                    place: LogPlace(sequence: numbers[1], hash: numbers[2], version: numbers[3])))
        }
        return entries
    }
}
