// Connections beyond the limit: a refusal in the protocol that the client speaks, within bounds.

import Basics
import ConnectionTestSupport
import TestSupport
import Testing

@testable import Connections
@testable import HTTPProtocols
@testable import NativeProtocol

@Suite(.timeLimit(.minutes(20))) struct RefusalTests {
    /// A server whose only connection is taken.
    private func fullServer(_ configure: (inout ServerConfiguration) -> Void = { _ in }) throws -> (
        LiveServer, RawClient
    ) {
        let live = try LiveServer {
            $0.connectionsMax = 1
            configure(&$0)
        }
        let first = RawClient(port: live.server.port)
        first.send(Preface.hearth)
        first.send(.hello)
        _ = first.receive()
        return (live, first)
    }

    @Test func `A client of HTTP 1 gets 503 and an error in JSON`() throws {
        let (live, first) = try fullServer()
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        // The rest of the request is read and dropped.
        raw.send(
            Array("POST /v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: 30000\r\n\r\n".utf8)
                + [UInt8](repeating: 1, count: 30_000))
        let reply = String(decoding: raw.receiveAll(), as: UTF8.self)
        expect(reply.hasPrefix("HTTP/1.1 503 Service Unavailable\r\n"))
        expect(reply.contains("\r\nContent-Type: application/json") && reply.contains("\r\nConnection: close\r\n"))
        expect(reply.contains(#""message": "This server has more than 1 connections.", "status": "UNAVAILABLE""#))
        expectEqual(live.statistics().connectionsRefused, 1)
        withExtendedLifetime(first) {}
    }

    @Test(arguments: [1, 7, 1_000])
    func `A client of HTTP 2 gets an answer to its first request, and a GOAWAY`(piece: Int) throws {
        let (live, first) = try fullServer()
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        let request = HTTP2Frame.request(path(.getDocument), stream: 3).bytes
        let bytes =
            HTTP2Preface.bytes + HTTP2Frame.settings((4, 100)).bytes + HTTP2Frame.window(9, stream: 0).bytes + request
        for start in stride(from: 0, to: bytes.count, by: piece) { raw.send(Array(bytes[start...].prefix(piece))) }
        var transcript = HTTP2Transcript()
        transcript.add(raw.receiveAll())
        expectEqual(transcript.frames.count, 3)
        expectEqual(transcript.frames.first?.isKind(.settings), true)
        let answer = transcript.answers[3]
        expect(answer?.head[":status"] == "503" && answer?.isEnded == true)
        expect(answer?.status == 14 && answer?.text == "this server has more than 1 connections")
        let goAway = transcript.goAways.first
        expect(
            goAway?.code == 11 && goAway?.lastStream == 3 && goAway?.text == "this server has more than 1 connections")
        withExtendedLifetime(first) {}
    }

    @Test func `A client of HTTP 2 that asks nothing gets a GOAWAY in the end`() throws {
        let (live, first) = try fullServer { $0.refusalMilliseconds = 50 }
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send(HTTP2Preface.bytes + HTTP2Frame.settings().bytes)
        var transcript = HTTP2Transcript()
        transcript.add(raw.receiveAll())
        expect(transcript.frames.map(\.kind) == [4, 7] && transcript.goAways.first?.lastStream == 0)
        withExtendedLifetime(first) {}
    }

    @Test func `The wait for the first bytes is bounded, and an unknown protocol gets nothing`() throws {
        let (live, first) = try fullServer { $0.refusalMilliseconds = 50 }
        defer { live.stop() }
        expectEqual(RawClient(port: live.server.port).receiveAll(), [])
        let partial = RawClient(port: live.server.port)
        partial.send(Array(HTTP2Preface.bytes.prefix(5)))
        expectEqual(partial.receiveAll(), [])
        let tls = RawClient(port: live.server.port)
        tls.send([0x16, 3, 1, 0, 5])
        expectEqual(tls.receiveAll(), [])
        withExtendedLifetime(first) {}
    }

    @Test func `Only so many wait for their refusal; a further one is closed at once`() throws {
        let (live, first) = try fullServer {
            $0.refusalsMax = 2
            $0.refusalMilliseconds = 60_000
        }
        defer { live.stopAtOnce() }
        let waiting = (0..<2).map { _ in RawClient(port: live.server.port) }
        let further = RawClient(port: live.server.port)
        expectEqual(further.receiveAll(), [])
        // One of those that waited leaves: there is room for another.
        waiting[0].send(Preface.hearth)
        expectEqual(waiting[0].receiveFrames().last?.code, UInt16(StatusCode.resourceExhausted.rawValue))
        waiting[0].finishSending()
        var answer: [TestFrame] = []
        for _ in 0..<1_000 where answer.isEmpty {
            let late = RawClient(port: live.server.port)
            late.send(Preface.hearth)
            answer = late.receiveFrames()
        }
        expectEqual(answer.last?.isKind(.goAway), true)
        withExtendedLifetime((first, waiting)) {}
    }
}
