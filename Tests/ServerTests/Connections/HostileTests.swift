// Bytes that no honest client sends: a clear status or a clean end, never a crash, and no leak.

import Basics
import ConnectionTestSupport
import Foundation
import TestSupport
import Testing

@testable import NativeProtocol

@Suite(.timeLimit(.minutes(20))) struct HostileTests {
    private static let opening = Preface.hearth + TestFrame.hello.bytes

    @Test func `Garbage in place of a protocol is closed without a word`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        for bytes in [[0x00], [0x16, 0x03, 0x01, 0x02], [0x89, 0x00], [0xFF, 0xFF, 0xFF, 0xFF]] as [[UInt8]] {
            let raw = RawClient(port: live.server.port)
            raw.send(bytes)
            expectEqual(raw.receiveAll(), [])
        }
    }

    @Test func `HTTP/1 gets a reply that it is not served here`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let old = RawClient(port: live.server.port)
        old.send(Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
        let answer = String(decoding: old.receiveAll(), as: UTF8.self)
        expect(answer.hasPrefix("HTTP/1.1 501 Not Implemented\r\n"))
        let body = answer.components(separatedBy: "\r\n\r\n").last!
        expect(answer.contains("Content-Length: \(body.utf8.count)\r\n"))
    }

    @Test func `A breach of the protocol is named in GOAWAY`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let tooLarge: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 2, 1, 1, 0, 1, 0, 0, 0]
        let cases: [([UInt8], StatusCode, String)] = [
            (TestFrame(.status, stream: 1).bytes, .invalidArgument, "this peer must not send STATUS"),
            (tooLarge, .resourceExhausted, "exceeds the limit"),
            (TestFrame.hello.bytes, .invalidArgument, "HELLO may be sent only once"),
            (TestFrame(.cancel, stream: 9).bytes, .invalidArgument, "never opened"),
        ]
        for (bytes, code, text) in cases {
            let raw = RawClient(port: live.server.port)
            raw.send(Self.opening + bytes)
            let frames = raw.receiveFrames()
            expectEqual(frames.first?.isKind(.hello), true)
            expectEqual(frames.last?.isKind(.goAway), true)
            expectEqual(frames.last?.code, UInt16(code.rawValue))
            expectEqual(frames.last?.text.contains(text), true)
        }
    }

    @Test func `Bytes that come one by one are the same bytes`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        let bytes =
            Self.opening + TestFrame.request(.getDocument, stream: 1, [1, 2, 3]).bytes + TestFrame(.goAway).bytes
        for byte in bytes { raw.send([byte]) }
        let reply = raw.receiveFrames().first { $0.isKind(.message) }
        expectEqual(reply?.payload, [1, 2, 3])
    }

    @Test func `A client that leaves in the middle of anything leaks nothing`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let parts =
            Self.opening + TestFrame.request(.commit, .more, stream: 1, [1]).bytes
            + TestFrame.request(.runQuery, stream: 2, littleEndianBytes(1_000, 1_000)).bytes
            + TestFrame.request(.write, [], stream: 3, [1]).bytes
            + TestFrame(.message, .endStream, stream: 1, [2]).bytes
        for count in stride(from: 0, through: parts.count, by: 5) {
            let raw = RawClient(port: live.server.port)
            raw.send(Array(parts[..<count]))
        }
        live.drain()
        expectEqual(live.statistics().connectionsOpen, 0)
        expect(live.record.state.withLock { $0.pending.isEmpty })
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `Mutated conversations end cleanly and the server continues`(seed: UInt64) throws {
        let live = try LiveServer { $0.headerMilliseconds = 100 }
        defer { live.stop() }
        var random = SeededGenerator(seed: seed)
        for round in 0..<60 {
            var bytes = Self.conversation(&random)
            for _ in 0..<Int(random.next() % 6) {
                let place = Int(random.next() % UInt64(bytes.count))
                switch random.next() % 4 {
                case 0: bytes[place] = UInt8(truncatingIfNeeded: random.next())
                case 1: bytes[place] ^= 1 << UInt8(random.next() % 8)
                case 2: bytes.remove(at: place)
                default: bytes.insert(contentsOf: bytes[..<min(place, 30)], at: place)
                }
            }
            let raw = RawClient(port: live.server.port)
            raw.send(Preface.hearth + bytes)
            raw.finishSending()
            _ = raw.receiveAll()
            if round % 20 == 0 {
                expectEqual(live.connect().callAndWait(.getDocument, [1])?.bytes, [1], "seed \(seed), round \(round)")
            }
        }
        live.drain()
        expectEqual(live.statistics().connectionsOpen, 0, "seed \(seed)")
    }

    /// HELLO and some frames that belong together.
    private static func conversation(_ random: inout SeededGenerator) -> [UInt8] {
        var bytes = TestFrame.hello.bytes
        for stream in 1...8 as ClosedRange<UInt32> {
            let payload = (0..<Int(random.next() % 40)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            switch random.next() % 6 {
            case 0: bytes += TestFrame.request(.getDocument, stream: stream, payload).bytes
            case 1:
                bytes +=
                    TestFrame.request(
                        .commit, [.endStream, .deadline], stream: stream, littleEndianBytes(30) + payload
                    ).bytes
            case 2:
                bytes += TestFrame.request(.getDocument, .more, stream: stream, payload).bytes
                bytes += TestFrame(.message, .endStream, stream: stream, payload).bytes
            case 3: bytes += TestFrame.request(.runQuery, stream: stream, littleEndianBytes(20, 300)).bytes
            case 4:
                bytes += TestFrame.request(.write, [], stream: stream, payload).bytes
                bytes += TestFrame(.message, stream: stream, payload).bytes + TestFrame(.end, stream: stream).bytes
            default:
                bytes += TestFrame.request(.listen, [], stream: stream, payload).bytes
                bytes +=
                    TestFrame(.window, stream: stream, littleEndianBytes(100)).bytes
                    + TestFrame(.cancel, stream: stream).bytes
            }
        }
        return bytes
    }
}
