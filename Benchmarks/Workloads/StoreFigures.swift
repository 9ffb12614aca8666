// What a loaded store costs: opening it, memory at rest, bytes on the disk.

import DocumentJSON
import DocumentModel
import FirebaseFirestore
import FirestoreMessages
import Foundation
import HearthClient

struct StoreFigures {
    /// A data directory that holds the books and no server uses.
    let data: String
    /// The `hearth` executable.
    let binary: String
    /// The JSON lines that were loaded.
    let books: String

    /// Prints a line for each figure: name, value, goal, unit, with tabs between.
    func run() async throws {
        let encoded = try encodedBytes()
        let disk = try runBytes()
        row("disk bytes for each encoded byte, x100", Int(Double(disk) * 100 / Double(encoded)), "<= 160", "%")

        // The first start reads what it needs from the disk; the median of several is what a restart costs.
        let clean = try (0..<5).map { _ in try restart { kill($0, SIGTERM) } }
        row("open after a clean stop", median(clean), "< 100", "ms")

        let server = try start()
        try await writeBurst(port: server.port)
        kill(server.process.processIdentifier, SIGKILL)
        server.process.waitUntilExit()
        let recovering = try start()
        row("open after kill -9", recovering.milliseconds, "< 2000", "ms")
        try await Task.sleep(for: .seconds(3))
        row("private memory at rest", try privateMegabytes(recovering.process), "< 50", "MB")
        kill(recovering.process.processIdentifier, SIGTERM)
        recovering.process.waitUntilExit()
    }

    private func row(_ name: String, _ value: Int, _ goal: String, _ unit: String) {
        print("\(name): \(value)\t\(value)\t\(goal)\t\(unit)")
    }

    private func median(_ values: [Int]) -> Int { values.sorted()[values.count / 2] }

    private struct Server {
        let process: Process
        let port: UInt16
        let milliseconds: Int
    }

    /// Starts a server and waits for its ready line.
    private func start() throws -> Server {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: binary)
        process.arguments = ["serve", "--data", data, "--port", "0"]
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        let began = ContinuousClock().now
        try process.run()
        var line = Data()
        while !line.contains(0x0A) {
            let piece = pipe.fileHandleForReading.availableData
            if piece.isEmpty { fatalError("hearth serve did not start") }
            line.append(piece)
        }
        let elapsed = (ContinuousClock().now - began).components
        let text = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard let port = text.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            fatalError("no port in \(text)")
        }
        return Server(
            process: process, port: port,
            milliseconds: Int(elapsed.seconds * 1000 + elapsed.attoseconds / 1_000_000_000_000_000))
    }

    private func restart(stop: (pid_t) -> Int32) throws -> Int {
        let server = try start()
        _ = stop(server.process.processIdentifier)
        server.process.waitUntilExit()
        return server.milliseconds
    }

    /// Enough commits that a crash leaves a log to replay.
    private func writeBurst(port: UInt16) async throws {
        let database = try DatabaseName(project: "bench")
        let client = try HearthClient(HearthClient.Configuration(host: "127.0.0.1", port: port))
        var number = 0
        for _ in 0..<200 {
            var writes = CommitWrites(database: database)
            for _ in 0..<250 {
                number += 1
                let fields = MapValue([
                    ("n", .integer(Int64(number))), ("text", .string(String(repeating: "burst ", count: 70))),
                ])
                writes.set("\(database.documentsRoot)/burst/\(number)", fields: fields.documentBytes)
            }
            try await client.commit(writes)
        }
        await client.close()
    }

    /// Bytes of all documents' fields and ids.
    private func encodedBytes() throws -> Int {
        var parser = JSONLineParser(database: "projects/bench/databases/(default)", idField: "id")
        var total = 0
        for line in try Data(contentsOf: URL(fileURLWithPath: books)).split(separator: 0x0A) {
            guard case .path(let id) = try parser.parse(Array(line).span) else { continue }
            total += id.utf8.count + parser.documentBytes.count
        }
        return total
    }

    /// Bytes that the runs take on the disk; the log's preallocated segments and the space for checkpoints are a fixed
    /// cost beside them.
    private func runBytes() throws -> Int {
        let runs = URL(fileURLWithPath: data).appendingPathComponent("runs")
        var total = 0
        for file in try FileManager.default.contentsOfDirectory(atPath: runs.path)
        where file.prefix(16).allSatisfy(\.isHexDigit) {
            var status = stat()
            if stat(runs.appendingPathComponent(file).path, &status) == 0 { total += Int(status.st_blocks) * 512 }
        }
        return total
    }

    /// Anonymous memory of a process: what is its own and not a mapped file.
    private func privateMegabytes(_ process: Process) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon") } ?? ""
        return (line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) } ?? 0) / 1024
    }
}
