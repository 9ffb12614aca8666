// Several clients edit at random, online and offline; they and the server are killed. At the end all agree.

import Foundation
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20)))
struct OfflineEditTests {
    private let directory = TemporaryDirectory("offline-edits")
    private static let isLong = ProcessInfo.processInfo.environment["HEARTH_SOAK"] != nil
    private static let clients = ["a", "b", "c"]

    private func server(port: Int) throws -> HearthProcess {
        let process = HearthProcess(["serve", "--data", directory.path(of: "server"), "--port", "\(port)"])
        try process.start()
        return process
    }

    private func client(
        _ program: String, _ name: String, run: Int, seed: UInt64, port: Int
    ) throws -> HearthProcess {
        let process = HearthProcess(
            [program, "127.0.0.1:\(port)"],
            environment: [
                "CACHE": directory.path(of: "cache-\(name)"), "CLIENT": name, "RUN": "\(run)", "SEED": "\(seed)",
                "HEARTH_PROJECT": "edits",
            ], executable: "\(HearthBinary.buildDirectory)/client-programs")
        try process.start()
        return process
    }

    @Test
    func `After kills of clients and server all agree, and every acknowledged edit is there once and in order`()
        async throws
    {
        let environment = ProcessInfo.processInfo.environment
        let seed = UInt64(environment["HEARTH_OFFLINE_SEED"] ?? "") ?? .random(in: 0 ... .max)
        print("HEARTH_OFFLINE_SEED=\(seed)")
        var generator = SeededGenerator(seed: seed)
        let port = try LoopbackSocket.reservePort()
        var server = try server(port: port)
        try #require(server.waitForLine(prefix: "hearth ready on ") != nil, "\(server.errors)")

        var acknowledged: [String] = []
        var running: [String: HearthProcess] = [:]
        var runs: [String: Int] = [:]
        func start(_ name: String) throws {
            runs[name, default: 0] += 1
            let process = try client("edits", name, run: runs[name] ?? 0, seed: generator.next(), port: port)
            _ = try #require(process.waitForLine(prefix: "started"), "\(process.errors)")
            running[name] = process
        }
        func kill(_ name: String) {
            guard let process = running.removeValue(forKey: name) else { return }
            process.signal(SIGKILL)
            process.waitForEnd()
            for line in process.output.split(separator: "\n") {
                if line.hasPrefix("acknowledged ") { acknowledged.append(String(line.dropFirst(13))) }
                expect(!line.hasPrefix("failed "), "seed \(seed): \(line)")
            }
        }
        for name in Self.clients { try start(name) }
        for _ in 0..<(Self.isLong ? 30 : 8) {
            // Time for edits between two kills.
            try await Task.sleep(for: .milliseconds(200 + generator.below(600)))
            if generator.oneIn(3) {
                server.signal(SIGKILL)
                server.waitForEnd()
                server = try self.server(port: port)
                _ = try #require(server.waitForLine(prefix: "hearth ready on "), "\(server.errors)")
            } else {
                let name = generator.pick(Self.clients)
                kill(name)
                try start(name)
            }
        }
        for name in Self.clients { kill(name) }
        try await check(seed, port, acknowledged)
        server.signal(SIGTERM)
        server.waitForEnd()
        expectEqual(server.status, 0)
    }

    private func check(_ seed: UInt64, _ port: Int, _ acknowledged: [String]) async throws {
        // First all pending writes reach the server, then every client shows what there is.
        for _ in 0..<2 {
            for name in Self.clients { _ = try documents(name, port) }
        }
        let views = try Self.clients.map { try documents($0, port) }
        for view in views { expectEqual(view, views[0], "seed \(seed)") }

        let firestore = TestFirestore.make(host: "127.0.0.1:\(port)", project: "edits")
        let marks = try await firestore.collection("marks").getDocuments(source: .server).documents.map(\.documentID)
        expect(!acknowledged.isEmpty, "seed \(seed)")
        expectEqual(Set(acknowledged).subtracting(marks), [], "seed \(seed): acknowledged edits are lost")
        for name in Self.clients {
            let own = marks.filter { $0.hasPrefix("\(name)-") }.map { id in
                let parts = id.split(separator: "-").compactMap { Int($0) }
                return parts[0] * 1_000_000 + parts[1]
            }
            let total = try await firestore.document("totals/\(name)").getDocument(source: .server)
            expect(total.get("n") as? Int ?? 0 == own.count, "seed \(seed): each edit of \(name) counts once")
            let history = try await firestore.document("history/\(name)").getDocument(source: .server)
            expect(
                history.get("edits") as? [Int] ?? [] == own.sorted(), "seed \(seed): the edits of \(name) are in order")
        }
        let count = try await firestore.collection("shared").getDocuments(source: .server).count
        expectEqual(views[0].filter { $0.hasPrefix("document shared/") }.count, count, "seed \(seed)")
        expectEqual(views[0].filter { $0.hasPrefix("document marks/") }.count, marks.count, "seed \(seed)")
        try await firestore.terminate()
    }

    /// What a client shows when the server has all its writes.
    private func documents(_ name: String, _ port: Int) throws -> [String] {
        let process = try client("drains", name, run: 0, seed: 0, port: port)
        _ = try #require(process.waitForLine(prefix: "end"), "\(process.errors)")
        process.waitForEnd()
        expectEqual(process.status, 0)
        return process.output.split(separator: "\n").map(String.init).filter { $0.hasPrefix("document ") }
    }
}
