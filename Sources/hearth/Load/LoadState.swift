// The progress of a load, kept next to the input so that an interrupted load can continue.

import Basics
import DocumentJSON

/// What `--resume` needs to know: everything before `progress.offset` is stored.
struct LoadState: Equatable {
    /// Where the documents go, in full; a resumed load must go to the same place.
    var collection: String
    /// The field that names documents, if any.
    var idField: String?
    /// What ids are made from for lines that name no document, at most ``integerMax``.
    var seed: UInt64
    /// How much of the input is sorted at once, in bytes; a resumed load must cut the input at the same places.
    var windowBytes: Int
    /// Where the window begins that is being stored.
    var progress = LoadProgress()
    /// How far its documents are stored, in the order of their names.
    var stored = WindowPlace()
    /// Bad lines of this window that were put aside.
    var reported = 0
    /// Documents before `stored` that the server refused, and which were put aside.
    var refused = 0

    /// Readers of JSON hold integers in 64 bits with a sign.
    static let integerMax = UInt64(Int64.max)

    /// Where the state of a load of `input` is kept.
    static func path(for input: String) -> String { "\(input).hearth-load" }

    /// A new load's state, or that of the interrupted one.
    ///
    /// - Parameters:
    ///   - fresh: the state of a new load with the same flags.
    ///   - resumes: whether an interrupted load is to be continued.
    ///   - place: names a line by its number.
    ///   - describe: names what a state was made with.
    static func initial(
        for input: String, _ fresh: LoadState, resumes: Bool, place: (Int) -> String, describe: (LoadState) -> String
    ) throws -> LoadState {
        let statePath = path(for: input)
        ReplacingFile.removeAbandoned(of: statePath)
        guard let old = try read(from: statePath) else {
            if resumes { throw CommandFailure("there is no interrupted load of \(input) (no \(statePath))") }
            return fresh
        }
        guard resumes else {
            throw CommandFailure(
                """
                a load of \(input) was interrupted at \(place(old.progress.lines + 1)); continue with --resume, or \
                delete \(statePath) to start again
                """)
        }
        guard old.collection == fresh.collection, old.idField == fresh.idField else {
            throw CommandFailure(
                """
                the interrupted load went to \(describe(old)); use the same flags, or delete \(statePath)
                """)
        }
        return old
    }

    /// The state kept at `path`, or nil where there is none.
    static func read(from path: String) throws -> LoadState? {
        guard let text = try InputFile.contentsIfPresent(of: path) else { return nil }
        guard let object = try? JSONObject(text), let state = try? LoadState(object) else {
            throw CommandFailure("\(path) is not the state of a load; delete it to load from the start")
        }
        return state
    }

    /// Replaces the file in one step, so that an interruption, a power cut too, leaves the old state or the new one.
    func write(to path: String) throws(CommandFailure) {
        do throws(CommandFailure) {
            try ReplacingFile.replace(path, with: Array(json.utf8), .bytes)
        } catch {
            throw CommandFailure(
                "\(error). It keeps the position for --resume, beside the input; a load from standard input (-) "
                    + "keeps none")
        }
    }
}

extension LoadState {
    /// `nil` if a member is missing.
    private init?(_ object: JSONObject) throws {
        guard let collection = try object.string("collection"), let seed: UInt64 = try object.integer("seed"),
            let windowBytes: Int = try object.integer("windowBytes"), let stored: Int = try object.integer("stored"),
            let storedSum: UInt64 = try object.integer("storedSum"),
            let progress = try object.object("progress").flatMap(LoadProgress.init), windowBytes > 0, stored >= 0
        else { return nil }
        let (reported, refused): (Int?, Int?) = (try object.integer("reported"), try object.integer("refused"))
        self.init(
            collection: collection, idField: try object.string("idField"), seed: seed, windowBytes: windowBytes,
            progress: progress, stored: WindowPlace(documents: stored, sum: storedSum), reported: reported ?? 0,
            refused: refused ?? 0)
    }

    private var json: String {
        let idField = idField.map { "\n  \"idField\": \(JSONText.quoted($0))," } ?? ""
        return """
            {
              "collection": \(JSONText.quoted(collection)),\(idField)
              "progress": \(progress.json),
              "refused": \(refused),
              "reported": \(reported),
              "seed": \(seed),
              "stored": \(stored.documents),
              "storedSum": \(stored.sum),
              "windowBytes": \(windowBytes)
            }

            """
    }
}

/// A place in the input, the start of a line, and what was made of everything before it.
struct LoadProgress: Equatable, Sendable {
    /// Bytes before the place.
    var offset = 0
    var lines = 0
    var documents = 0
    /// Bad lines that were put aside.
    var skipped = 0
}

extension LoadProgress {
    /// `nil` if a member is missing or is not a number of things that there may be.
    fileprivate init?(_ object: JSONObject) throws {
        let numbers = try ["offset", "lines", "documents", "skipped"].map { name -> Int? in try object.integer(name) }
        guard let offset = numbers[0], let lines = numbers[1], let documents = numbers[2], let skipped = numbers[3],
            [offset, lines, documents, skipped].allSatisfy((0..<Int.max).contains)
        else { return nil }
        self.init(offset: offset, lines: lines, documents: documents, skipped: skipped)
    }

    fileprivate var json: String {
        """
        {"documents": \(documents), "lines": \(lines), "offset": \(offset), "skipped": \(skipped)}
        """
    }
}

/// A place in the order of a window.
struct WindowPlace: Equatable, Sendable {
    /// Documents before it.
    var documents = 0
    /// What these documents are (XXH3-64 of their batches), at most ``LoadState/integerMax``.
    var sum: UInt64 = 0
}

/// Turns batches that finish in any order into the place before which all are stored.
struct Watermark {
    private var finished: [Int: (end: WindowPlace, refused: Int)] = [:]
    private var next = 0
    private(set) var reached: WindowPlace
    /// Documents before that place that the server refused.
    private(set) var refused: Int

    init(start: WindowPlace, refused: Int) {
        reached = start
        self.refused = refused
    }

    /// Notes that batch number `batch`, from 0 in order, which ends at `end`, is stored.
    /// - Parameter refused: documents of it that are not.
    mutating func finish(_ batch: Int, end: WindowPlace, refused: Int = 0) {
        finished[batch] = (end, refused)
        while let batch = finished.removeValue(forKey: next) {
            reached = batch.end
            self.refused += batch.refused
            next += 1
        }
    }
}
