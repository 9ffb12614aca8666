// The official Python client over its REST transport: Tests/Interop/rest_client.py against a server process.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct RESTClientTests {
    /// The root of the package: the nearest folder above this file with a Package.swift.
    private static var packageRoot: URL {
        var folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        while folder.path != "/",
            !FileManager.default.fileExists(atPath: folder.appendingPathComponent("Package.swift").path)
        {
            folder.deleteLastPathComponent()
        }
        return folder
    }

    /// As for the other interop tests: `HEARTH_PYTHON`, or the environment that Tools/install-dependencies --tests
    /// makes.
    private static var interpreter: String {
        ProcessInfo.processInfo.environment["HEARTH_PYTHON"]
            ?? packageRoot.appendingPathComponent(".venv/bin/python").path
    }

    @Test
    func `Every method with a REST form answers the official client`() throws {
        let directory = TemporaryDirectory("rest-client")
        let server = try ServerProcess(data: directory.path(of: "data"))
        defer { #expect(server.stop() == 0) }
        let process = Process()
        let errors = Pipe()
        process.executableURL = URL(fileURLWithPath: Self.interpreter)
        process.arguments = [
            Self.packageRoot.appendingPathComponent("Tests/Interop/rest_client.py").path, String(server.port),
        ]
        process.standardError = errors
        try process.run()
        let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(text)")
    }
}
