// The work of `hearth load` and `hearth import`: lines or entities in, commits out.
//
//     file -> LoadInput   -> ParsedChunk -> LoadWindow -> LoadBatch -> commit -> Watermark -> state file
//             1 MiB of       writes, on     sorted by     500 docs    in flight  all before   for --resume
//             whole lines    every core     name                      at most N  here stored
//
// While one window is being stored the next one is read; memory is bounded by these two. A batch is one atomic commit
// with a request id, so one that is sent again because its answer was lost counts once; and a line always makes the
// same document, so loading it again changes nothing.

import Basics
import DocumentModel
import FirestoreMessages
import Glibc
import HearthClient

/// Loads one input; used once.
struct Loader {
    struct Options {
        /// What the input is called in messages.
        var input: String
        /// That of all documents; nil if they are named in full.
        var database: DatabaseName?
        /// Where the position is kept for `--resume`; nil for an input that cannot be read again.
        var statePath: String?
        /// Opens the input at a position.
        var open: @Sendable (LoadProgress) throws -> any LoadInput
        /// Names a line by its number, for example `books.jsonl:17`.
        var place: @Sendable (Int) -> String
        /// Commits under way at once.
        var commitsInFlight: Int
        /// Where bad lines go; nil stops at the first.
        var skipBadPath: String?
        /// Opens that file.
        var openBad: @Sendable (String) throws -> any BadOutput
        /// Shows the progress.
        var progressLine: ProgressLine
    }

    let options: Options
    let client: HearthClient
    private(set) var state: LoadState
    /// What was read since this loader began.
    private(set) var notes = LoadNotes()
    private var statePath: String? { options.statePath }
    private var badLines: (any BadOutput)?
    private var progressLine: ProgressLine
    private var lastSave = ContinuousClock().now
    /// Whether there is a state file: from the first batch that is sent on.
    private var hasStateFile: Bool

    init(_ options: Options, client: HearthClient, state: LoadState, isResumed: Bool) {
        self.options = options
        self.client = client
        self.state = state
        hasStateFile = isResumed
        progressLine = options.progressLine
    }

    /// Loads to the end of the input.
    ///
    /// - Returns: what was loaded, for people.
    mutating func run() async throws -> String {
        let start = state.progress
        do {
            try await load()
        } catch {
            progressLine.clear()
            if hasStateFile { try? save() }
            throw error
        }
        progressLine.clear()
        let done = state.progress
        let documents = done.documents - start.documents
        var summary = ProgressLine.text(
            documents: documents, bytes: done.offset - start.offset, totalBytes: nil, seconds: progressLine.seconds)
        if done.skipped > 0, let path = options.skipBadPath { summary += "; \(done.skipped) invalid lines in \(path)" }
        if let statePath { unlink(statePath) }
        return summary
    }

    // MARK: Windows

    private mutating func load() async throws {
        let reader = WindowReader(
            try options.open(state.progress), start: state.progress, windowBytes: state.windowBytes,
            stopsAtBadLine: options.skipBadPath == nil)
        // A load that cannot begin leaves nothing.
        let client = client
        async let reached: Void = client.waitForServer()
        var window = try await reader.next()
        try await reached
        badLines = try options.skipBadPath.map(options.openBad)
        while let current = window {
            // A load that fails does not wait for it: a pipe may bring nothing more.
            let following = Task { try await reader.next() }
            try await store(current, totalBytes: reader.totalBytes)
            if badLines == nil, let bad = current.badLines.first {
                throw CommandFailure("\(options.place(bad.line)): \(bad.reason)")
            }
            window = try await following.value
        }
    }

    /// Stores the rest of a window, and continues after it.
    private mutating func store(_ window: LoadWindow, totalBytes: Int?) async throws {
        // Whatever else the file may hold by now: what was stored is passed over only if it is still the same.
        var next = try window.place(state.stored, database: options.database)
        if next != state.stored { (state.reported, state.refused) = (0, 0) }
        state.stored = next
        if next.documents == 0, state.reported != window.badLines.count {
            for bad in window.badLines { try badLines?.append(bad.text, number: bad.line, reason: bad.reason) }
            state.reported = badLines == nil ? 0 : window.badLines.count
        }
        if window.count > 0 { try save() }
        var watermark = Watermark(start: state.stored, refused: state.refused)
        try await withThrowingTaskGroup(of: (Int, Result<LoadBatch, BatchFailure>).self) { [client, options] group in
            var inFlight = 0
            var number = 0
            while next.documents < window.count || inFlight > 0 {
                if next.documents < window.count, inFlight < options.commitsInFlight {
                    let batch = try window.batch(from: next, database: options.database)
                    next = batch.end
                    group.addTask { [number] in (number, await Self.store(batch, with: client)) }
                    number += 1
                    inFlight += 1
                } else if let (finished, result) = try await group.next() {
                    inFlight -= 1
                    try settle(finished, result, &watermark)
                    (state.stored, state.refused) = (watermark.reached, watermark.refused)
                    show(window, totalBytes: totalBytes)
                    if ContinuousClock().now - lastSave > .seconds(1) { try save() }
                }
            }
        }
        notes.add(window.notes)
        state.progress = window.end
        state.progress.documents -= state.refused
        state.progress.skipped += state.refused
        // The line at which a load stops is read again by the next one.
        if badLines == nil { state.progress.skipped -= window.badLines.count }
        state.stored = WindowPlace()
        (state.reported, state.refused) = (0, 0)
        if hasStateFile || badLines != nil { try save() }
    }

    private mutating func show(_ window: LoadWindow, totalBytes: Int?) {
        let bytes = Double(window.inputBytes) * Double(state.stored.documents) / Double(max(window.count, 1))
        progressLine.update(
            documents: state.progress.documents + state.stored.documents, bytes: state.progress.offset + Int(bytes),
            totalBytes: totalBytes)
    }

    // MARK: Storing

    /// Why a batch is not stored, or only in part.
    enum BatchFailure: Error {
        /// The server refused these lines and stored the others.
        case refused([(line: Int, reason: String)], LoadBatch)
        case failed(RequestError)
    }

    private static func store(_ batch: LoadBatch, with client: HearthClient) async -> Result<LoadBatch, BatchFailure> {
        guard !batch.lines.isEmpty else { return .success(batch) }
        do {
            try await client.commit(batch.writes, options: HearthClient.CallOptions(timeout: .seconds(300)))
            return .success(batch)
        } catch {
            guard error.code == .invalidArgument else { return .failure(.failed(error)) }
            // Something in it is refused: each write is sent separately to find it.
            do {
                return outcome(of: batch, try await client.batchWrite(batch.writes).statuses)
            } catch {
                return .failure(.failed(error))
            }
        }
    }

    /// What became of a batch whose writes were sent separately.
    static func outcome(of batch: LoadBatch, _ statuses: [StatusMessage]) -> Result<LoadBatch, BatchFailure> {
        var refused: [(line: Int, reason: String)] = []
        for (line, status) in zip(batch.lines, statuses) where status.code != .ok {
            // Anything else says nothing about the line: another time it may be stored.
            guard status.code == .invalidArgument else {
                return .failure(.failed(RequestError(status.code, status.message)))
            }
            refused.append((line, status.message))
        }
        return refused.isEmpty ? .success(batch) : .failure(.refused(refused, batch))
    }

    private mutating func settle(
        _ number: Int, _ result: Result<LoadBatch, BatchFailure>, _ watermark: inout Watermark
    ) throws {
        switch result {
        case .success(let batch): watermark.finish(number, end: batch.end)
        case .failure(.failed(let error)):
            let text = ErrorText.describe(error)
            throw CommandFailure(
                (error.code == .unavailable ? text : "the server refused a batch: \(text)") + resumeHint)
        case .failure(.refused(let refused, let batch)):
            guard badLines != nil else {
                throw CommandFailure("\(options.place(refused[0].line)): \(refused[0].reason)" + resumeHint)
            }
            for (line, reason) in refused.sorted(by: { $0.line < $1.line }) { try badLines?.note(line, reason: reason) }
            watermark.finish(number, end: batch.end, refused: refused.count)
        }
    }

    private var resumeHint: String { statePath == nil ? "" : "; continue with --resume" }

    private mutating func save() throws {
        lastSave = ContinuousClock().now
        guard let statePath else { return }
        try state.write(to: statePath)
        hasStateFile = true
    }
}

/// Reads, parses and sorts windows, one call at a time.
private actor WindowReader {
    /// The file's size in bytes; nil for what has no size.
    nonisolated let totalBytes: Int?
    private let input: any LoadInput
    private let stopsAtBadLine: Bool
    private let windowBytes: Int
    private var place: LoadProgress
    private var isAtEnd = false
    /// Why the input cannot be read further than the last window.
    private var failure: (any Error)?

    init(_ input: sending any LoadInput, start: LoadProgress, windowBytes: Int, stopsAtBadLine: Bool) {
        self.input = input
        totalBytes = input.totalBytes
        self.stopsAtBadLine = stopsAtBadLine
        self.windowBytes = windowBytes
        place = start
    }

    /// The next window; nil at the end. One that holds a bad line that stops the load is the last. What is before a
    /// place that cannot be read is a window too.
    func next() async throws -> LoadWindow? {
        if let failure { throw failure }
        if isAtEnd { return nil }
        var window = LoadWindow(start: place)
        let tasksMax = max(sysconf(Int32(_SC_NPROCESSORS_ONLN)), 1)
        try await withThrowingTaskGroup(of: (Int, ParsedChunk).self) { group in
            var parsed: [Int: ParsedChunk] = [:]
            var (begun, appended, readBytes) = (0, 0, 0)
            while true {
                if !isAtEnd, begun - appended < 2 * tasksMax, readBytes < windowBytes {
                    guard let part = nextPart() else { continue }
                    readBytes += part.byteCount
                    group.addTask { [begun] in (begun, part.parse()) }
                    begun += 1
                } else if appended < begun, let (number, chunk) = try await group.next() {
                    parsed[number] = chunk
                    while let chunk = parsed.removeValue(forKey: appended) {
                        appended += 1
                        window.append(chunk)
                        if stopsAtBadLine, !chunk.badLines.isEmpty {
                            isAtEnd = true
                            group.cancelAll()
                            return
                        }
                    }
                } else {
                    return
                }
            }
        }
        // Not by bytes: a window may hold nothing but the bad line that stops the load.
        if window.isEmpty {
            if let failure { throw failure }
            return nil
        }
        window.sort()
        place = window.end
        return window
    }

    private func nextPart() -> LoadPart? {
        do {
            if let part = try input.next() { return part }
        } catch {
            failure = error
        }
        isAtEnd = true
        return nil
    }
}
