// The official Python client over its REST transport: Tests/Interop/rest_client.py against a server process.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct RESTClientTests {
    @Test
    func `Every method with a REST form answers the official client`() throws {
        let directory = TemporaryDirectory("rest-client")
        let server = try ServerProcess(data: directory.path(of: "data"))
        defer { expectEqual(server.stop(), 0) }
        let process = Process()
        let errors = Pipe()
        process.executableURL = URL(fileURLWithPath: Repository.python)
        process.arguments = [
            Repository.url("Tests/Interop/rest_client.py").path, String(server.port),
        ]
        process.standardError = errors
        try process.run()
        let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        expectEqual(process.terminationStatus, 0, "\(text)")
    }
}
