// The work of `hearth load`: lines in, commits out, several of them under way at once.
//
//     file -> LineReader -> JSONLineParser -> LoadBatch -> commit -> Watermark -> state file
//             one line      document bytes    500 docs    in flight  all before   for --resume
//                                                         at most N  here stored
//
// Memory is bounded by the batches in flight. A batch is one atomic commit with a request id, so one that is sent again
// because its answer was lost counts once; and a line always makes the same document, so loading it again changes nothing.

import DocumentJSON
import DocumentModel
import FirebaseFirestore
import Foundation

/// Documents of consecutive lines, on their way to one commit.
struct LoadBatch: Sendable {
    var writes: CommitWrites
    /// The line of each write, for errors.
    var lines: [Int] = []
    /// The place behind the last line.
    var end: LoadProgress

    static let documentsMax = 500
    static let bytesMax = 1 << 20

    init(database: DatabaseName, start: LoadProgress) {
        writes = CommitWrites(database: database)
        end = start
    }

    var isFull: Bool { lines.count >= Self.documentsMax || writes.bytes.count >= Self.bytesMax }
}

/// Loads one input; used once.
struct Loader {
    struct Options {
        var input: String
        var collection: CollectionPath
        var idField: String?
        /// Commits under way at once.
        var commitsInFlight: Int
        /// Where bad lines go; nil stops at the first.
        var skipBadPath: String?
        var isQuiet: Bool
    }

    let options: Options
    let client: HearthClient
    private(set) var state: LoadState
    private let statePath: String?
    private var watermark: Watermark
    private var badLines: BadLines?
    private var progressLine: ProgressLine
    private var lastSave = ContinuousClock().now

    init(_ options: Options, client: HearthClient, state: LoadState) throws {
        self.options = options
        self.client = client
        self.state = state
        statePath = options.input == "-" ? nil : LoadState.path(for: options.input)
        watermark = Watermark(start: state.progress)
        badLines = try options.skipBadPath.map { try BadLines(path: $0, input: options.input) }
        progressLine = ProgressLine(isQuiet: options.isQuiet)
    }

    /// Loads to the end of the input, and says so on standard output.
    mutating func run() async throws {
        try save()
        let start = state.progress
        do {
            try await load()
        } catch {
            progressLine.clear()
            try? save()
            throw error
        }
        progressLine.clear()
        let done = state.progress
        let documents = done.documents - start.documents
        var summary = ProgressLine.text(
            documents: documents, bytes: done.offset - start.offset, totalBytes: nil, seconds: progressLine.seconds)
        if done.skipped > 0, let path = options.skipBadPath { summary += "; \(done.skipped) bad lines in \(path)" }
        print("loaded \(summary)")
        if let statePath { try? FileManager.default.removeItem(atPath: statePath) }
    }

    // MARK: Reading

    private mutating func load() async throws {
        let reader = try LineReader(path: options.input, offset: state.progress.offset, lineNumber: state.progress.lines)
        var parser = JSONLineParser(database: options.collection.database.description, idField: options.idField)
        var batch = LoadBatch(database: options.collection.database, start: state.progress)
        let totalBytes = reader.totalBytes
        var batchNumber = 0
        var failure: (any Error)?

        try await withThrowingTaskGroup(of: (Int, Result<LoadBatch, BatchFailure>).self) { [client] group in
            var inFlight = 0
            func send() {
                let (number, full) = (batchNumber, batch)
                batchNumber += 1
                inFlight += 1
                batch = LoadBatch(database: options.collection.database, start: full.end)
                group.addTask { (number, await Self.store(full, with: client)) }
            }
            func awaitOne() async throws {
                guard let (number, result) = try await group.next() else { return }
                inFlight -= 1
                try settle(number, result)
                progressLine.update(documents: watermark.reached.documents, bytes: watermark.reached.offset, totalBytes: totalBytes)
            }

            do {
                while try reader.next({ line, number in try add(line, number, &parser, &batch) }) {
                    batch.end.offset = reader.offset
                    batch.end.lines = reader.lineNumber
                    guard batch.isFull else { continue }
                    if inFlight >= options.commitsInFlight { try await awaitOne() }
                    send()
                }
            } catch {
                // Everything before the bad line is still stored.
                failure = error
            }
            if !batch.lines.isEmpty || failure == nil { send() }
            while inFlight > 0 { try await awaitOne() }
        }
        try save()
        if let failure { throw failure }
    }

    /// Puts the document of a line into the batch.
    private mutating func add(
        _ line: Span<UInt8>, _ number: Int, _ parser: inout JSONLineParser, _ batch: inout LoadBatch
    ) throws {
        if line.isEmpty || line[0] == 0x23 || (line.count == 1 && line[0] == 0x0D) { return }
        do {
            let name = try documentName(try parser.parse(line), number)
            try parser.withDocumentBytes { fields in
                // The server would refuse the whole batch for one bad document; this names the line.
                let size = try name.withUTF8Span { DocumentSize.name(try ResourceNameView($0)) }
                let document = DocumentSize.document(nameSize: size, fieldsSize: try DocumentValidator.validate(fields: fields).size)
                if document > Limits.documentBytes { throw InvalidDocument(.documentTooLarge, offset: 0) }
                batch.writes.set(name, fields: fields)
            }
            batch.lines.append(number)
            batch.end.documents += 1
        } catch {
            let reason = Self.reason(error)
            guard badLines != nil else { throw CommandFailure("\(options.input):\(number): \(reason)") }
            try badLines?.append(line, number: number, reason: reason)
            batch.end.skipped += 1
        }
    }

    private func documentName(_ name: JSONLineParser.Name, _ line: Int) throws -> String {
        switch name {
        case .path(let path):
            return try DocumentPath("\(options.collection)/\(path)").description
        case .none:
            var id: [UInt8] = []
            AutomaticID.append(seed: state.seed, line: line, to: &id)
            return "\(options.collection)/\(String(decoding: id, as: UTF8.self))"
        }
    }

    private static func reason(_ error: any Error) -> String {
        switch error {
        case let error as RequestError: error.message
        case let error as InvalidDocument: error.message
        default: "\(error)"
        }
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
            // Something in it is refused: each write on its own tells which.
            do {
                let response = try await client.batchWrite(batch.writes)
                let refused = zip(batch.lines, response.statuses).filter { $0.1.code != .ok }.map { (line: $0.0, reason: $0.1.message) }
                return refused.isEmpty ? .success(batch) : .failure(.refused(refused, batch))
            } catch {
                return .failure(.failed(error))
            }
        }
    }

    private mutating func settle(_ number: Int, _ result: Result<LoadBatch, BatchFailure>) throws {
        switch result {
        case .success(let batch): watermark.finish(number, end: batch.end)
        case .failure(.failed(let error)):
            throw CommandFailure("the server did not take a batch: \(error.message) (\(error.code))" + resumeHint)
        case .failure(.refused(let refused, let batch)):
            let first = refused[0]
            guard badLines != nil else { throw CommandFailure("\(options.input):\(first.line): \(first.reason)") }
            for (line, reason) in refused { try badLines?.note(line, reason: reason) }
            watermark.finish(number, end: batch.end)
        }
        state.progress = watermark.reached
        if ContinuousClock().now - lastSave > .seconds(1) { try save() }
    }

    private var resumeHint: String { statePath == nil ? "" : "; go on with --resume" }

    private mutating func save() throws {
        lastSave = ContinuousClock().now
        if let statePath { try state.write(to: statePath) }
    }
}
