// How programs end that use the library: always in order, and not before their writes are acknowledged.

import Foundation
import TestSupport
import Testing

@testable import FirebaseFirestore

/// Runs the programs of Tests/ClientPrograms.
private enum ClientProgram {
    static func start(
        _ program: String, _ address: String, count: Int = 1, environment: [String: String] = [:]
    ) throws -> HearthProcess {
        let process = HearthProcess(
            [program, address, "\(count)"], environment: environment,
            executable: "\(HearthBinary.buildDirectory)/client-programs")
        try process.start()
        return process
    }

    static func run(
        _ program: String, _ address: String, count: Int = 1, environment: [String: String] = [:]
    ) throws -> HearthProcess {
        let process = try start(program, address, count: count, environment: environment)
        process.waitForEnd()
        return process
    }
}

/// An address of this machine at which nobody listens.
private let nobody = "127.0.0.1:1"

@Suite(.timeLimit(.minutes(20))) struct EndingTests {
    /// How often each way to end is tried: 200 times with `HEARTH_SOAK`.
    private static let rounds = ProcessInfo.processInfo.environment["HEARTH_SOAK"] == nil ? 8 : 200

    @Test(
        arguments: ["returns", "exits", "exitsInTask", "exitsOnThreads"],
        [nobody, "localhost:1", "no-such-host.invalid:1"])
    func `A program that ends right after its first calls ends with its own status`(program: String, address: String)
        throws
    {
        for round in 0..<Self.rounds {
            let process = try ClientProgram.run(
                program, address, count: 1 + round % 8, environment: ["HEARTH_EXIT_WAIT": "0"])
            try #require(process.status == 0, "round \(round): \(process.status) \(process.errors)")
        }
    }

    @Test(arguments: ["writes", "writesAndExits"])
    func `Writes that nobody awaited reach the server before the process ends`(program: String) async throws {
        let directory = TemporaryDirectory("client-ending")
        let server = try ServerProcess(data: directory.path)
        let process = try ClientProgram.run(
            program, "127.0.0.1:\(server.port)", count: 300,
            environment: ["HEARTH_PROJECT": "p", "HEARTH_EXIT_WAIT": "600"])
        expectEqual(process.status, 0)
        expectEqual(process.errors, "")
        let firestore = TestFirestore.make(host: "127.0.0.1:\(server.port)", project: "p")
        try await expectEqual(firestore.collection("programs").count.getAggregation(source: .server).count, 300)
        try await firestore.terminate()
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Writes that the server cannot take in time are counted on standard error`() throws {
        let process = try ClientProgram.run("writes", nobody, count: 3, environment: ["HEARTH_EXIT_WAIT": "0.1"])
        expectEqual(process.status, 0)
        let words = "3 writes wait for a reply of \(nobody). These writes may be lost"
        expect(process.errors.contains(words), "\(process.errors)")
    }

    @Test
    func `The wait at the end is what the environment says, and five seconds without a number in it`() {
        expectEqual(ExitFlush.seconds(in: [:]), 5)
        expectEqual(ExitFlush.seconds(in: ["HEARTH_EXIT_WAIT": "0"]), 0)
        expectEqual(ExitFlush.seconds(in: ["HEARTH_EXIT_WAIT": "2.5"]), 2.5)
        expectEqual(ExitFlush.seconds(in: ["HEARTH_EXIT_WAIT": "soon"]), 5)
        expectEqual(ExitFlush.seconds(in: ["HEARTH_EXIT_WAIT": "-1"]), 5)
        expectEqual(ExitFlush.seconds(in: ["HEARTH_EXIT_WAIT": "1e9"]), 3600)
    }
}

@Suite(.timeLimit(.minutes(20))) struct OutageProgramTests {
    @Test
    func `A program that awaits a write learns on standard error that the server cannot be reached, and what to do`()
        throws
    {
        let process = try ClientProgram.start("awaits", nobody)
        let reason = "cannot connect to \(nobody): connection refused."
        expect(process.waitForError("The server \(nobody) cannot be reached: \(reason)"))
        expect(process.errors.contains("Start a Hearth server at this address, or set another one"))
        expect(process.errors.contains("1 call waits"))
        expect(process.isRunning)
        process.signal(SIGKILL)
        process.waitForEnd()
    }

    @Test
    func `enableLogging writes connections and calls to standard error`() throws {
        let directory = TemporaryDirectory("client-logging")
        let server = try ServerProcess(data: directory.path)
        let process = try ClientProgram.run("logs", "127.0.0.1:\(server.port)")
        expectEqual(process.status, 0)
        for text in [
            "connecting to 127.0.0.1:\(server.port)", "connected to", "commit programs/d: started",
            "commit programs/d: OK after",
        ] {
            expect(process.errors.contains(text), "\(text) in \(process.errors)")
        }
        expectEqual(server.stop(), 0)
    }
}
