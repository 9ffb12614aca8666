// Our client against `openssl s_server`.

import Basics
import Foundation
import TLS
import TLSTestSupport
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20))) struct OpenSSLServerTests {
    private let site = TestSite.shared
    private let directory = TemporaryDirectory("hearth-tls")

    /// Starts a server that returns lines reversed, and a session with it; `use` gets the session after its handshake,
    /// or after its failure.
    private func serve(_ arguments: [String], _ use: (SocketSession) throws -> Void) throws {
        let file = directory.path(of: "server.pem")
        let pem = site.certificate.certificate + site.certificate.key.privatePEM
        try Data(pem).write(to: URL(fileURLWithPath: file))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", file, "-key", file, "-rev", "-naccept", "1"]
            + arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        defer {
            process.terminate()
            process.waitUntilExit()
        }
        let port = try #require(Self.port(output.fileHandleForReading))
        let descriptor = try #require(LoopbackSocket.connect(port: port))
        let client = try site.client { $0.protocols = ["h2"] }
        let peer = SocketSession(descriptor, try TLSSession(client: client, serverName: "localhost"))
        peer.flush()
        while peer.session.handshake == nil, peer.receive() != nil {}
        try use(peer)
    }

    /// The port in the line `ACCEPT 127.0.0.1:PORT`.
    private static func port(_ output: FileHandle) -> UInt16? {
        var text = ""
        while let data = try? output.read(upToCount: 1), !data.isEmpty {
            text += String(decoding: data, as: UTF8.self)
            guard text.hasSuffix("\n") else { continue }
            if let line = text.split(separator: "\n").last, line.hasPrefix("ACCEPT") {
                return line.split(separator: ":").last.flatMap { UInt16($0.filter(\.isNumber)) }
            }
        }
        return nil
    }

    @Test(arguments: [("-tls1_2", TLSVersion.tls12), ("-tls1_3", .tls13)])
    func `Both versions, with a protocol`(option: String, version: TLSVersion) throws {
        try serve([option, "-alpn", "h2"]) { peer in
            expectEqual(peer.session.handshake?.version, version, "\(String(describing: peer.session.failure))")
            expectEqual(peer.session.handshake?.protocolName, "h2")
            _ = try peer.session.send(Array("hello\n".utf8).byteSpan)
            peer.flush()
            var text: [UInt8] = []
            while text.count < 6, let more = peer.receive() { text += more }
            expectEqual(String(decoding: text, as: UTF8.self), "olleh\n")
        }
    }

    @Test
    func `A server without a protocol in common, and an old one`() throws {
        try serve(["-tls1_1", "-cipher", "ALL@SECLEVEL=0"]) { peer in
            expectNil(peer.session.handshake)
            expect(peer.session.failure != nil)
        }
        // s_server ignores offers if it has no protocols; the caller sees that none was chosen.
        try serve([]) { peer in
            expect(peer.session.handshake != nil)
            expectNil(peer.session.handshake?.protocolName)
        }
    }
}
