// The rules of a WebChannel session, without sockets.

import Basics
import TestSupport
import Testing

@testable import HTTPProtocols

@Suite(.timeLimit(.minutes(20))) struct WebChannelSessionTests {
    private let session = Session()

    /// A session that expectations can change.
    private final class Session {
        private var value = WebChannelSession(limits: WebChannelLimits(), now: 0)

        var dueAt: UInt64 { value.dueAt }
        var heldBytes: Int { value.heldBytes }
        var hasRoom: Bool { value.hasRoom }
        var isFinished: Bool { value.isFinished }
        var hasBackChannel: Bool { value.hasBackChannel }
        var reply: [UInt8] { value.reply() }
        /// Places for messages that may be delivered.
        var placeCount: Int? { (Mirror(reflecting: value).descendant("ready") as? [[UInt8]])?.count }

        func receive(_ messages: [[UInt8]], from first: UInt64, now: UInt64 = 0) throws(RequestError) {
            try value.receive(messages, from: first, now: now)
        }
        func takeMessage() -> [UInt8]? { value.takeMessage() }
        func append(_ payload: [UInt8]) { value.append(payload) }
        func end(with payload: [UInt8], dropsRest: Bool = false) { value.end(with: payload, dropsRest: dropsRest) }
        func acknowledge(_ id: UInt64, now: UInt64 = 0) -> Bool { value.acknowledge(id, now: now) }
        func openBackChannel(after id: UInt64, holdMilliseconds: UInt64?, now: UInt64 = 0) {
            value.openBackChannel(after: id, holdMilliseconds: holdMilliseconds, now: now)
        }
        func yieldBackChannel() { value.yieldBackChannel() }
        func closeBackChannel() { value.closeBackChannel(now: 0) }
        func takeOutput(now: UInt64 = 0) -> WebChannelSession.Output? { value.takeOutput(now: now) }
        func tick(now: UInt64) -> WebChannelSession.Due { value.tick(now: now) }
    }

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    private func text(_ output: WebChannelSession.Output?) -> String? {
        output.map { String(decoding: $0.frame, as: UTF8.self) + ($0.isLast ? " last" : "") }
    }

    private func output(now: UInt64 = 0) -> String? { text(session.takeOutput(now: now)) }

    private func messages() -> [String] {
        var all: [String] = []
        while let message = session.takeMessage() { all.append(String(decoding: message, as: UTF8.self)) }
        return all
    }

    @Test func `Messages that were delivered take no place while others wait`() throws {
        try session.receive([bytes("m")], from: 0)
        for number: UInt64 in 1...1_000 {
            try session.receive([bytes("m")], from: number)
            expect(session.takeMessage() != nil)
        }
        expectEqual(session.placeCount, 1)
    }

    @Test func `The handshake is the emulator's`() {
        let frame = WebChannelFrame.handshake("kc0Xaz3r7fSZq06wQM-Kcw==", keepAliveMilliseconds: 30_000)
        expectEqual(frame, bytes("52\n[[0,[\"c\",\"kc0Xaz3r7fSZq06wQM-Kcw==\",\"\",8,12,30000]]]"))
    }

    @Test func `A frame's length counts code units of UTF-16`() {
        expectEqual(WebChannelFrame.text(bytes("\"aé😀\"")), bytes("6\n\"aé😀\""))
        for text in ["", "a", "ß", "€", "😀", "a\u{0301}", "\u{FFFF}\u{10000}"] {
            expectEqual(WebChannelFrame.utf16Count(bytes(text)), text.utf16.count)
        }
    }

    @Test func `A streaming back channel gets something at once`() {
        session.openBackChannel(after: 0, holdMilliseconds: nil)
        expectEqual(output(), "14\n[[1,[\"noop\"]]]")
        expectNil(output())
        session.append(bytes("[2]"))
        session.append(bytes("[3]"))
        expectEqual(output(), "17\n[[2,[2]],[3,[3]]]")
        expect(session.hasBackChannel)
    }

    @Test func `What waits is sent at once and no no-op with it`() {
        session.append(bytes("[1]"))
        session.openBackChannel(after: 0, holdMilliseconds: nil)
        expectEqual(output(), "9\n[[1,[1]]]")
        expectNil(output())
    }

    @Test func `A long poll ends with its first frame, or with a no-op after its hold`() {
        session.openBackChannel(after: 0, holdMilliseconds: 6_000, now: 1_000)
        expectNil(output(now: 1_000))
        expectEqual(session.dueAt, 7_000)
        expectEqual(session.tick(now: 6_999), .nothing)
        expectEqual(session.tick(now: 7_000), .output)
        expectEqual(output(now: 7_000), "14\n[[1,[\"noop\"]]] last")
        expect(!session.hasBackChannel)
        expect(session.acknowledge(1, now: 7_000))
        session.openBackChannel(after: 1, holdMilliseconds: .max, now: 7_000)
        expectEqual(session.dueAt, 37_000)
        session.append(bytes("[2]"))
        expectEqual(output(), "9\n[[2,[2]]] last")
    }

    @Test func `A streaming back channel that yields ends without a further frame`() {
        session.yieldBackChannel()
        expectNil(output())
        session.openBackChannel(after: 0, holdMilliseconds: nil)
        expectEqual(output(), "14\n[[1,[\"noop\"]]]")
        session.yieldBackChannel()
        expectEqual(output(), " last")
        expect(!session.hasBackChannel)
        expect(session.acknowledge(1))
        session.openBackChannel(after: 1, holdMilliseconds: nil)
        session.append(bytes("[2]"))
        session.yieldBackChannel()
        expectEqual(output(), "22\n[[2,[\"noop\"]],[3,[2]]] last")
    }

    @Test func `A long poll that yields ends with a no-op, so that it is not empty`() {
        session.openBackChannel(after: 0, holdMilliseconds: .max)
        expectNil(output())
        session.yieldBackChannel()
        expectEqual(output(), "14\n[[1,[\"noop\"]]] last")
        expect(session.acknowledge(1))
        session.openBackChannel(after: 1, holdMilliseconds: .max)
        session.append(bytes("[2]"))
        session.yieldBackChannel()
        expectEqual(output(), "9\n[[2,[2]]] last")
    }

    @Test func `Arrays are sent again until they are acknowledged`() {
        for number in 1...4 { session.append(bytes("[\(number)]")) }
        session.openBackChannel(after: 0, holdMilliseconds: nil)
        expectEqual(output(), "33\n[[1,[1]],[2,[2]],[3,[3]],[4,[4]]]")
        session.closeBackChannel()
        expect(session.acknowledge(2))
        session.openBackChannel(after: 2, holdMilliseconds: nil)
        expectEqual(output(), "17\n[[3,[3]],[4,[4]]]")
        expect(session.acknowledge(4))
        expectEqual(session.heldBytes, 0)
        expect(!session.acknowledge(5))
    }

    @Test func `A second back channel replaces the first and gets what is not acknowledged`() {
        session.openBackChannel(after: 0, holdMilliseconds: nil)
        session.append(bytes("[2]"))
        expectEqual(output(), "22\n[[1,[\"noop\"]],[2,[2]]]")
        session.openBackChannel(after: 0, holdMilliseconds: nil)
        expectEqual(output(), "22\n[[1,[\"noop\"]],[2,[2]]]")
    }

    @Test func `An idle back channel carries a no-op at each interval`() {
        session.openBackChannel(after: 0, holdMilliseconds: nil)
        expect(output() != nil)
        expectEqual(session.tick(now: 29_999), .nothing)
        expectEqual(session.tick(now: 30_000), .output)
        expectEqual(output(now: 30_000), "14\n[[2,[\"noop\"]]]")
        expectEqual(session.dueAt, 60_000)
    }

    @Test func `A session without back channel and requests expires`() throws {
        expectEqual(session.dueAt, 60_000)
        try session.receive([], from: 0, now: 20_000)
        expectEqual(session.tick(now: 79_999), .nothing)
        expectEqual(session.tick(now: 80_000), .expired)
    }

    @Test func `Messages are delivered in order and once each`() throws {
        try session.receive([bytes("a"), bytes("b")], from: 0)
        expectEqual(messages(), ["a", "b"])
        // Repeated, with a new one.
        try session.receive([bytes("b"), bytes("c")], from: 1)
        expectEqual(messages(), ["c"])
        // One that overtook another.
        try session.receive([bytes("e")], from: 4)
        expectEqual(messages(), [])
        try session.receive([bytes("d"), bytes("E")], from: 3)
        expectEqual(messages(), ["d", "e"])
        try session.receive([bytes("a")], from: 0)
        expectEqual(messages(), [])
        expectEqual(session.heldBytes, 0)
    }

    @Test func `What may wait is bounded in number, bytes and distance`() throws {
        let one = [bytes("x")]
        #expect(throws: RequestError.self) { try session.receive(one, from: 10_001) }
        #expect(throws: RequestError.self) { try session.receive(one, from: UInt64.max) }
        try session.receive(Array(repeating: one[0], count: 10_000), from: 0)
        #expect(throws: RequestError.self) { try session.receive(one, from: 10_000) }
        expectEqual(messages().count, 10_000)
        let large = [UInt8](repeating: 0x61, count: 9 << 20)
        try session.receive([large], from: 10_000)
        #expect(throws: RequestError.self) { try session.receive([large], from: 10_001) }
        expectEqual(session.heldBytes, large.count)
    }

    @Test func `A full session ends the response so that the page acknowledges`() {
        let half = [UInt8](repeating: 0x31, count: 600 << 10)
        session.openBackChannel(after: 0, holdMilliseconds: nil)
        expectEqual(session.takeOutput(now: 0)?.isLast, false)
        session.append(half)
        expectEqual(session.takeOutput(now: 0)?.isLast, false)
        expect(session.hasRoom)
        session.append(half)
        expect(!session.hasRoom)
        expectEqual(session.takeOutput(now: 0)?.isLast, true)
        expect(!session.hasBackChannel)
        expect(session.acknowledge(3))
        expect(session.hasRoom)
    }

    @Test func `A session without back channel has less room`() {
        session.append([UInt8](repeating: 0x31, count: 64 << 10))
        expect(!session.hasRoom)
        session.openBackChannel(after: 0, holdMilliseconds: nil)
        expect(session.hasRoom)
        session.closeBackChannel()
        expect(!session.hasRoom)
    }

    @Test func `An end may drop what was not read`() {
        session.append(bytes("[1]"))
        session.append(bytes("[2]"))
        session.end(with: bytes("[\"close\"]"), dropsRest: true)
        expectEqual(session.heldBytes, 57)
        session.openBackChannel(after: 0, holdMilliseconds: nil)
        expectEqual(output(), "15\n[[3,[\"close\"]]] last")
    }

    @Test func `The reply to messages says what is open, sent and outstanding`() {
        expectEqual(session.reply, bytes("7\n[0,0,0]"))
        session.append(bytes("[1]"))
        expectEqual(session.reply, bytes("7\n[0,0,0]"))
        session.openBackChannel(after: 0, holdMilliseconds: nil)
        expect(output() != nil)
        expectEqual(session.reply, bytes("8\n[1,1,51]"))
        session.append(bytes("[2]"))
        expectEqual(session.reply, bytes("8\n[1,1,51]"))
    }

    @Test func `The last array ends the response, and the session when it is acknowledged`() {
        session.openBackChannel(after: 0, holdMilliseconds: nil)
        expect(output() != nil)
        session.end(with: bytes("[\"close\"]"))
        session.append(bytes("[9]"))
        expectEqual(output(), "15\n[[2,[\"close\"]]] last")
        expect(!session.isFinished)
        // The response was lost.
        session.openBackChannel(after: 1, holdMilliseconds: nil)
        expectEqual(output(), "15\n[[2,[\"close\"]]] last")
        expect(session.acknowledge(2))
        expect(session.isFinished)
    }

    @Test func `A page with a bad network gets everything in order`() {
        for seed in UInt64(0)..<500 {
            var random = SeededGenerator(seed: seed)
            let steps = (0..<400).map { _ in UInt8.random(in: 0...255, using: &random) }
            expectNil(WebChannelCheck.violation(steps.byteSpan), "seed \(seed)")
        }
    }

    @Test func `Every saved input of the fuzzer keeps every property`() throws {
        try FuzzCorpus.expectKept("WebChannel", over: 20) { WebChannelCheck.violation($0.byteSpan) }
    }
}
