// The official Python clients over TLS. What they do and expect is in Tests/Interop/official_tls.py.

import Foundation
import TLSTestSupport
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct TLSTests {
    private let directory = TemporaryDirectory("hearth-official-tls")

    private func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        let path = directory.path(of: name)
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    @Test
    func `Writes, reads, a listener and a query, blocking and asyncio`() throws {
        let authority = TestAuthority()
        let issued = authority.issue(["IP:127.0.0.1"])
        let server = try ServerProcess(
            data: directory.path(of: "data"),
            arguments: [
                "--tls-cert", write("server.pem", issued.certificate), "--tls-key",
                write("server.key", issued.key.privatePEM), "--insecure",
            ])
        let outcome = try OfficialClient.run(
            ["127.0.0.1:\(server.port)", write("ca.pem", authority.certificate)], program: "official_tls.py")
        expectEqual(outcome.status, 0, "\(outcome.text)")
        expectEqual(server.stop(), 0)
    }
}
