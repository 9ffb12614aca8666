// The progress of a load, kept next to the input so that an interrupted load can continue.

import Foundation

/// What `--resume` needs to know: everything before `progress.offset` is stored.
struct LoadState: Codable, Equatable {
    /// Where the documents go, in full; a resumed load must go to the same place.
    var collection: String
    /// The field that names documents, if any.
    var idField: String?
    /// What ids are made from for lines that name no document.
    var seed: UInt64
    /// How much of the input is sorted at once, in bytes; a resumed load must cut the input at the same places.
    var windowBytes: Int
    /// Where the window begins that is being stored.
    var progress = LoadProgress()
    /// How far its documents are stored, in the order of their names, of how many; 0 of 0 before it is read.
    var stored = 0
    var storedOf = 0

    /// Where the state of a load of `input` is kept.
    static func path(for input: String) -> String { "\(input).hearth-load" }

    /// The state kept at `path`, or nil where there is none.
    static func read(from path: String) throws -> LoadState? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        do {
            return try JSONDecoder().decode(LoadState.self, from: data)
        } catch {
            throw CommandFailure("\(path) is not the state of a load; delete it to load from the start")
        }
    }

    /// Replaces the file in one step, so that an interruption leaves the old state or the new one.
    func write(to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        try encoder.encode(self).write(to: URL(fileURLWithPath: path), options: .atomic)
    }
}

/// A place in the input, the start of a line, and what was made of everything before it.
struct LoadProgress: Codable, Equatable, Sendable {
    /// Bytes before the place.
    var offset = 0
    var lines = 0
    var documents = 0
    /// Bad lines that were put aside.
    var skipped = 0
}

/// Turns batches that finish in any order into the place before which all are stored.
struct Watermark {
    private var finished: [Int: Int] = [:]
    private var next = 0
    private(set) var reached: Int

    init(start: Int) { reached = start }

    /// Notes that batch number `batch`, from 0 in order, which ends at `end`, is stored.
    mutating func finish(_ batch: Int, end: Int) {
        finished[batch] = end
        while let end = finished.removeValue(forKey: next) {
            reached = end
            next += 1
        }
    }
}
