// Addresses of servers.

import Basics
import DocumentModel
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct ConfigurationTests {
    @Test(arguments: [
        ("localhost:9000", "localhost", UInt16(9000)), ("127.0.0.1", "127.0.0.1", 8080), ("[::1]:81", "::1", 81),
        ("[fe80::1]", "fe80::1", 8080), ("example.org:65535", "example.org", 65535),
    ])
    func `Addresses are read`(text: String, host: String, port: UInt16) throws {
        let configuration = try HearthClient.Configuration(address: text)
        expectEqual(configuration.host, host)
        expectEqual(configuration.port, port)
    }

    @Test(arguments: [
        ("unix:/run/hearth/socket", "/run/hearth/socket"), ("unix:///run/hearth/socket", "/run/hearth/socket"),
        ("unix:here", "here"), ("unix:./a:b", "./a:b"),
    ])
    func `Unix sockets are read as in gRPC`(text: String, path: String) throws {
        var configuration = try HearthClient.Configuration(address: text)
        expectEqual(configuration.socketPath, path)
        expectEqual(configuration.address, "unix:\(path)")
        try configuration.useToken("t")
        expect(!configuration.exposesToken)
        #expect(throws: RequestError.self) { try configuration.useTLS() }
    }

    @Test(arguments: [
        "", ":80", "host:", "host:0", "host:65536", "host:x", "[::1", "[::1]x", "[]:1", "http://host:80",
        "unix:", "unix://", "unix://host/path", "unix:a\u{0}b",
    ])
    func `Text that is not an address is refused`(text: String) {
        #expect(throws: RequestError.self) { try HearthClient.Configuration(address: text) }
    }
}
