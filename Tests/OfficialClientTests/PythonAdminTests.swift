// The official Python admin client over the socket in the data directory. What it does and expects is in
// Tests/Interop/official_admin.py.

import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct PythonAdminTests {
    private let directory = TemporaryDirectory("hearth-admin")

    @Test
    func `Indexes, fields, operations and databases over the socket and over TCP`() throws {
        let data = directory.path(of: "data")
        let server = try ServerProcess(data: data, arguments: ["--log-level", "warning"])
        let outcome = try OfficialClient.run(
            ["\(data)/admin.sock", "127.0.0.1:\(server.port)"], program: "official_admin.py")
        expectEqual(outcome.status, 0, "\(outcome.text)")
        expectEqual(server.stop(), 0)
    }
}
