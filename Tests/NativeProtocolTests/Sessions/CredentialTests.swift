// Tokens that the client shows.

import Basics
import ConnectionTestSupport
import TestSupport
import Testing

@testable import Calls
@testable import NativeProtocol

@Suite(.timeLimit(.minutes(20))) struct CredentialTests {
    private func session(credentialsMax: UInt64 = 32, keepsAuthorization: Bool = true) -> ServerSession {
        var limits = ServerSessionLimits.forTests()
        limits.keepsAuthorization = keepsAuthorization
        limits.credentialsMax = credentialsMax
        return .opened(limits)
    }

    private func shown(_ token: String) -> TestFrame { TestFrame(.credential, stream: 0, Array(token.utf8)) }

    @Test func `A token holds for the calls that begin after it, until the next one`() {
        var session = session()
        _ = session.receive(.request(.commit, stream: 1))
        expectNil(session.authorization(of: 1))
        _ = session.settleCurrent()
        expectEqual(session.receive(shown("first")), .nothing)
        _ = session.receive(.request(.commit, stream: 2))
        expectEqual(session.authorization(of: 2), "Bearer first")
        _ = session.settleCurrent()
        expectEqual(session.receive(shown("second")), .nothing)
        _ = session.receive(.request(.getDocument, stream: 3))
        expectEqual(session.authorization(of: 3), "Bearer second")
        expectEqual(session.finishCurrent(3), true)
        expectNil(session.authorization(of: 1))
        expectEqual(session.authorization(of: 2), "Bearer first")
        expectNil(session.authorization(of: 3))
    }

    @Test func `A call whose message comes in parts has the token of its first part`() {
        var session = session()
        _ = session.receive(shown("first"))
        expectEqual(session.receive(.request(.commit, .more, stream: 1, [1])), .nothing)
        _ = session.receive(shown("second"))
        let last = session.receive(TestFrame(.message, .endStream, stream: 1, [2]))
        expectEqual(last, .begin(1, RequestHead(rpc: .commit), .assembled))
        expectEqual(session.authorization(of: 1), "Bearer first")
    }

    @Test func `An empty token takes the one before back`() {
        var session = session()
        _ = session.receive(shown("first"))
        expectEqual(session.receive(shown("")), .nothing)
        _ = session.receive(.request(.commit, stream: 1))
        expectNil(session.authorization(of: 1))
    }

    @Test func `A server that asks for no tokens checks them and keeps none`() {
        var session = session(keepsAuthorization: false)
        expectEqual(session.receive(shown("first")), .nothing)
        _ = session.receive(.request(.commit, stream: 1))
        expectNil(session.authorization(of: 1))
        _ = session.settleCurrent()
        expectEqual(session.receive(shown("a b")), .fail(.malformedCredential))
    }

    @Test(arguments: [0x00, 0x0A, 0x0D, 0x20, 0x7F, 0x80, 0xFF] as [UInt8])
    func `Other bytes than visible ASCII end the connection`(byte: UInt8) {
        var session = session()
        expectEqual(
            session.receive(TestFrame(.credential, stream: 0, [0x61, byte, 0x61])), .fail(.malformedCredential))
    }

    @Test func `A token has 16 KiB at most`() {
        var session = session()
        let longest = [UInt8](repeating: 0x7E, count: 16_384)
        expectEqual(session.receive(TestFrame(.credential, stream: 0, longest)), .nothing)
        expectEqual(
            session.receive(TestFrame(.credential, stream: 0, longest + [0x7E])),
            .fail(.wrongLength(.credential, 16_385)))
    }

    @Test func `A token belongs to the connection and has no flags`() {
        var session = session()
        expectEqual(session.receive(TestFrame(.credential, stream: 1, [0x61])), .fail(.noStreamExpected(.credential)))
        expectEqual(session.receive(TestFrame(.credential, .endStream, [0x61])), .fail(.unknownFlags(.credential, 1)))
    }

    @Test func `Tokens that come too often end the connection, and time permits more`() {
        var session = session(credentialsMax: 2)
        session.now = 10_000
        expectEqual(session.receive(shown("a")), .nothing)
        expectEqual(session.receive(shown("b")), .nothing)
        session.now += 1_000
        expectEqual(session.receive(shown("c")), .nothing)
        expectEqual(session.receive(shown("d")), .fail(.tooManyCredentials))
        expectEqual(ProtocolViolation.tooManyCredentials.code, .resourceExhausted)
    }

    @Test func `A server never shows a token`() {
        var session = ClientSession<Int>(settings: Settings())
        _ = session.receive(TestFrame.hello)
        expectEqual(session.receive(shown("a")), .fail(.kindFromWrongSide(.credential)))
    }

    @Test func `No description has a part of a token`() throws {
        let credential = try #require(Credential("canary"))
        var dumped = ""
        dump([credential], to: &dumped)
        for text in ["\(credential)", String(reflecting: credential), dumped] { expect(!text.contains("canary")) }
        expectEqual("\(credential)", "a token of 6 bytes")
        expectNil(Credential("two words"))
        expectNil(Credential(String(repeating: "a", count: 16_385)))
        expectEqual(Credential(""), Credential.none)
    }
}
