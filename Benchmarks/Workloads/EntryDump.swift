// The entries of a store as a file, for programs that write the same entries into another store.

import DocumentStore
import Foundation
import StorageEngines

/// Writes the newest version of every entry of a data directory in random order.
struct EntryDump {
    /// A data directory that no process uses.
    let directory: String
    /// The file to write. An entry is the byte counts of its key and its value (4 bytes each, little-endian), the key,
    /// the value.
    let output: String

    /// Entries go to a random one of these parts, and each part is shuffled in memory.
    private static let parts = 64

    private enum Unexpected: Error {
        /// After a checkpoint the log has none that must be applied.
        case logRecord
    }

    /// Prints the number of entries and their bytes.
    func run() throws {
        let configuration = StoreConfiguration(directory: directory)
        let store = try DocumentStore.open(configuration)
        try store.checkpoint()
        store.close()
        let options = DocumentStore.engineOptions(configuration)
        let engine = try StorageEngine.open(directory: directory, options: options) { _, _, _, _ in
            throw Unexpected.logRecord
        }
        defer { try? engine.close() }
        var generator = SystemRandomNumberGenerator()
        let names = (0..<Self.parts).map { "\(output).\($0)" }
        defer { for name in names { try? FileManager.default.removeItem(atPath: name) } }
        let (count, bytes) = try distribute(engine, to: names, using: &generator)
        let file = try emptyFile(output)
        for name in names { try shuffle(name, into: file, using: &generator) }
        try file.close()
        print("\(count) entries\n\(bytes) bytes of keys and values")
    }

    private func emptyFile(_ name: String) throws -> FileHandle {
        let url = URL(fileURLWithPath: name)
        try Data().write(to: url)
        return try FileHandle(forWritingTo: url)
    }

    private func distribute(
        _ engine: StorageEngine, to names: [String], using generator: inout some RandomNumberGenerator
    ) throws -> (count: Int, bytes: Int) {
        var (count, bytes) = (0, 0)
        var pending = [Data](repeating: Data(), count: names.count)
        let files = try names.map(emptyFile)
        let snapshot = try engine.makeReader().snapshot(at: nil)
        var cursor = try snapshot.cursor()
        while try cursor.next() {
            let part = Int.random(in: 0..<names.count, using: &generator)
            let (key, value) = (cursor.key, cursor.value)
            for length in [key.byteCount, value.byteCount] {
                withUnsafeBytes(of: UInt32(length).littleEndian) { pending[part].append(contentsOf: $0) }
            }
            key.withUnsafeBytes { pending[part].append(contentsOf: $0) }
            value.withUnsafeBytes { pending[part].append(contentsOf: $0) }
            count += 1
            bytes += key.byteCount + value.byteCount
            if pending[part].count >= 1 << 20 {
                try files[part].write(contentsOf: pending[part])
                pending[part].removeAll(keepingCapacity: true)
            }
        }
        for (file, rest) in zip(files, pending) {
            try file.write(contentsOf: rest)
            try file.close()
        }
        return (count, bytes)
    }

    private func shuffle(
        _ name: String, into file: FileHandle, using generator: inout some RandomNumberGenerator
    ) throws {
        let bytes = try [UInt8](Data(contentsOf: URL(fileURLWithPath: name)))
        var entries: [Range<Int>] = []
        var position = 0
        func length(at offset: Int) -> Int {
            (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << ($1 * 8) }
        }
        while position < bytes.count {
            let end = position + 8 + length(at: position) + length(at: position + 4)
            entries.append(position..<end)
            position = end
        }
        entries.shuffle(using: &generator)
        var shuffled = Data(capacity: bytes.count)
        for entry in entries { shuffled.append(contentsOf: bytes[entry]) }
        try file.write(contentsOf: shuffled)
    }
}
