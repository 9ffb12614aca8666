// Flow control both ways, slow readers, and the orderly end of gRPC connections.

import Basics
import ConnectionTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct GRPCFlowTests {
    @Test func `A reply waits for the client's window and takes no more than it permits`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (4, 0))
        let stream = client.request(.deleteDocument, littleEndianBytes(100_000))
        client.ping()
        expectEqual(client.transcript.answers[stream]?.data ?? [], [])
        client.send(.window(1_000, stream: stream))
        expect(client.read { $0.answers[stream]?.data.count == 1_000 })
        client.ping()
        expectEqual(client.transcript.answers[stream]?.data.count, 1_000)
        client.send(.window(1 << 20, stream: stream))
        // The connection's own window is 65,535 bytes.
        expect(client.read { $0.answers[stream]?.data.count == 65_535 })
        client.send(.window(1 << 20, stream: 0))
        expectEqual(client.answer(stream).messages, [[UInt8](repeating: 7, count: 100_000)])
    }

    @Test func `New settings change the windows of open streams`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (4, 10))
        let stream = client.request(.deleteDocument, littleEndianBytes(5_000))
        expect(client.read { $0.answers[stream]?.data.count == 10 })
        client.send(.settings((4, 60_000)))
        expectEqual(client.answer(stream).messages?.first?.count, 5_000)
    }

    @Test func `A reader that stops pauses the source, and other calls proceed`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (4, 50_000))
        client.send(.window(1 << 30, stream: 0))
        let slow = client.request(.runQuery, littleEndianBytes(1_000, 10_000))
        expect(client.read { $0.answers[slow]?.data.count == 50_000 })
        for number in 0..<20 as Range<UInt8> {
            expectEqual(client.callAndWait(.getDocument, [number]).messages, [[number]])
        }
        // Five messages fill the window, one more may have been asked for.
        expect(live.record.state.withLock { $0.messagesProduced } <= 6)
        client.send(.window(1 << 30, stream: slow))
        let answer = client.answer(slow)
        expectEqual(answer.messages?.count, 1_000)
        expectEqual(answer.status, 0)
    }

    @Test func `Two readers share a connection's window and both finish`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (4, 1 << 30))
        let streams = [
            client.request(.runQuery, littleEndianBytes(100, 3_000)),
            client.request(.runQuery, littleEndianBytes(100, 3_000)),
        ]
        // A little at a time: 2 x 100 x 3,005 bytes and what the connection began with.
        for _ in 0..<60 {
            client.send(.window(10_007, stream: 0))
            client.ping()
        }
        for stream in streams { expectEqual(client.answer(stream).messages?.count, 100) }
    }

    @Test func `A client that asks and does not read is served a bounded amount, then the rest`() throws {
        let live = try LiveServer {
            $0.outputPauseBytes = 100_000
            $0.http2KeptBackBytesMax = 100_000
        }
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (4, 0))
        let streams = (0..<200).map { _ in client.request(.deleteDocument, littleEndianBytes(50_000)) }
        client.ping()
        // Two answers pass the mark, and no further request is begun.
        expectEqual(live.record.state.withLock { $0.heads.count }, 2)
        client.send(.window(1 << 30, stream: 0), .settings((4, 1 << 30)))
        for stream in streams { expectEqual(client.answer(stream).messages?.first?.count, 50_000) }
    }

    @Test func `A client that reads a reply of large messages slowly makes other calls meanwhile`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (4, 65_535))
        client.send(.window(1 << 30, stream: 0))
        let slow = client.request(.runQuery, littleEndianBytes(5, 1_000_000))
        expect(client.read { $0.answers[slow]?.data.count == 65_535 })
        // Nearly a megabyte is kept back.
        expectEqual(client.callAndWait(.getDocument, [1]).messages, [[1]])
        client.send(.window(1 << 30, stream: slow))
        expectEqual(client.answer(slow).messages?.count, 5)
    }

    @Test func `What streams keep back is bounded, and is little while the connection's window is shut`() throws {
        func heads(_ client: HTTP2Client, _ live: LiveServer) -> Int {
            for _ in 0..<20 { client.sendRequest(.deleteDocument, littleEndianBytes(100_000)) }
            // The calls that wait begin in shares, of which a PING may be between two.
            for _ in 0..<50 { client.ping() }
            return live.record.state.withLock { $0.heads.count }
        }
        let one = try LiveServer {
            $0.outputPauseBytes = 100_000
            $0.http2KeptBackBytesMax = 300_000
        }
        defer { one.stop() }
        expectEqual(heads(HTTP2Client(one, settings: (4, 0)), one), 3)
        let all = try LiveServer {
            $0.outputPauseBytes = 100_000
            $0.http2KeptBackBytesTotalMax = 250_000
        }
        defer { all.stop() }
        let first = HTTP2Client(all, settings: (4, 0))
        let begun = heads(first, all)
        expectEqual(begun, 4)
        // The sum is exceeded: another one has no more than it always has.
        expectEqual(heads(HTTP2Client(all, settings: (4, 0)), all), begun + 1)
        let shut = try LiveServer { $0.outputPauseBytes = 100_000 }
        defer { shut.stop() }
        // The connection's window is 65,535 bytes, and a reply takes all of it.
        expectEqual(heads(HTTP2Client(shut, settings: (4, 1 << 20)), shut), 2)
    }

    @Test func `Requests that wait for a reader count as memory, and have their deadlines`() throws {
        let live = try LiveServer {
            $0.outputPauseBytes = 10_000
            $0.http2KeptBackBytesMax = 10_000
            $0.assemblyBytesMax = 100_000
        }
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (4, 0))
        let held = client.request(.deleteDocument, littleEndianBytes(50_000))
        client.ping()
        let waiting = client.request(
            .getDocument, [UInt8](repeating: 1, count: 60_000), fields: [("grpc-timeout", "100m")])
        let refused = client.request(.getDocument, [UInt8](repeating: 1, count: 60_000))
        expectEqual(client.answer(refused).status, 8)
        expectEqual(client.answer(waiting).status, 4)
        expect(client.transcript.answers[held]?.isEnded != true)
        expectEqual(live.record.state.withLock { $0.heads.count }, 1)
        expectEqual(live.record.state.withLock { $0.cancelled }, [])
    }

    @Test func `A client that does not read its socket is dropped`() throws {
        let live = try LiveServer {
            $0.slowReaderMilliseconds = 50
            $0.outputPauseBytes = 50_000
        }
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (4, 0x7FFF_FFFF))
        client.raw.shrinkReceiveBuffer()
        client.send(.window(0x7FFF_0000, stream: 0))
        client.sendRequest(.runQuery, littleEndianBytes(1_000_000, 10_000))
        expect(live.record.reaches { $0.sourcesCancelled == 1 })
        try waitUntil("the connection is closed") { live.statistics().connectionsOpen == 0 }
        expect(live.record.state.withLock { $0.messagesProduced } < 10_000)
    }

    @Test func `A reply of which the client takes nothing ends with a status, and other calls proceed`() throws {
        let live = try LiveServer { $0.stalledReplyMilliseconds = 50 }
        defer { live.stop() }
        // Shut between two messages, within one, and before the first.
        for window in [50_025, 3_000, 0] as [UInt32] {
            let client = HTTP2Client(live, settings: (4, window))
            client.send(.window(1 << 30, stream: 0))
            let stalled = client.request(.runQuery, littleEndianBytes(1_000, 10_000))
            let answer = client.answer(stalled)
            expectEqual(answer.status, 4)
            expectEqual(answer.text, "the client has not read this response for 50 ms")
            expectEqual(answer.data.count, Int(window))
            client.send(.settings((4, 1 << 20)))
            expectEqual(client.callAndWait(.getDocument, [1]).messages, [[1]])
        }
        expect(live.record.reaches { $0.sourcesCancelled == 3 })
        expectEqual(live.record.state.withLock { $0.cancelled }, [.stalled, .stalled, .stalled])
        expect(live.record.state.withLock { $0.messagesProduced } <= 7)
    }

    @Test func `An answer that is complete and that nobody takes is dropped`() throws {
        let live = try LiveServer { $0.stalledReplyMilliseconds = 50 }
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (4, 0))
        let stream = client.request(.deleteDocument, littleEndianBytes(50_000))
        expectEqual(client.answer(stream).reset, 8)
        client.send(.settings((4, 1 << 20)))
        expectEqual(client.callAndWait(.getDocument, [1]).messages, [[1]])
    }

    @Test func `Windows are opened again as messages are taken`() throws {
        let live = try LiveServer { $0.http2WindowBytes = 65_535 }
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (4, 1 << 30))
        client.send(.window(1 << 30, stream: 0))
        // A message larger than the window can only come whole when the window follows it.
        let payload = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
        let message = grpcMessage(payload)
        for method in [RPC.getDocument, .write] {
            let stream = client.newStream()
            client.send(.request(path(method), stream: stream))
            var window = 65_535
            var sent = 0
            var credits = client.transcript.frames.count
            while sent < message.count {
                let count = min(window, 16_384, message.count - sent)
                if count == 0 {
                    guard
                        client.read(until: {
                            $0.frames.dropFirst(credits).contains { $0.isKind(.windowUpdate) && $0.stream == stream }
                        })
                    else { break }
                    for frame in client.transcript.frames[credits...]
                    where frame.isKind(.windowUpdate) && frame.stream == stream {
                        window += Int(frame.code)
                    }
                    credits = client.transcript.frames.count
                    continue
                }
                client.send(
                    .data(Array(message[sent..<sent + count]), stream: stream, endStream: sent + count == message.count)
                )
                sent += count
                window -= count
            }
            expectEqual(client.answer(stream).messages, [payload])
        }
    }

    @Test func `Incomplete messages have a limit on each connection and on all`() throws {
        let live = try LiveServer {
            $0.assemblyBytesMax = 100_000
            $0.assemblyBytesTotalMax = 150_000
        }
        defer { live.stop() }
        let part: (UInt32) -> [HTTP2Frame] = {
            [
                .request(path(.getDocument), stream: $0),
                .data([0, 0, 1, 0, 0] + [UInt8](repeating: 0, count: 15_000), stream: $0, endStream: false),
            ]
        }
        let first = HTTP2Client(live)
        for stream in 0..<7 as Range<UInt32> { first.raw.send(part(stream * 2 + 1).flatMap(\.bytes)) }
        expectEqual(first.answer(13).status, 8)
        let second = HTTP2Client(live)
        for stream in 0..<6 as Range<UInt32> { second.raw.send(part(stream * 2 + 1).flatMap(\.bytes)) }
        expectEqual(second.readAll().goAways.last?.text, "the server's incomplete messages exceed 150000 bytes")
    }

    // MARK: Ending

    @Test func `A drain is announced, serves what was on its way, and ends`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        let early = client.request(.commit, [1])
        expect(live.record.reaches { $0.pending.count == 1 })
        let drained = Promise<Bool>()
        live.server.drain(graceMilliseconds: 60_000) { drained.fulfil(true) }
        expect(client.read { !$0.goAways.isEmpty && $0.frames.contains { $0.isKind(.ping) } })
        expectEqual(client.transcript.goAways.map(\.lastStream), [0x7FFF_FFFF])
        expectEqual(client.transcript.goAways.map(\.code), [0])
        // Sent before the client could know: served.
        let onItsWay = client.request(.getDocument, [2])
        expectEqual(client.answer(onItsWay).messages, [[2]])
        client.send(
            HTTP2Frame(.ping, HTTP2Frame.ack, client.transcript.frames.last { $0.isKind(.ping) }?.payload ?? []))
        expect(client.read { $0.goAways.count == 2 })
        expectEqual(client.transcript.goAways[1].lastStream, onItsWay)
        // Too late: neither served nor answered.
        let late = client.request(.getDocument, [3])
        let call = live.record.state.withLock { $0.pending[0] }
        call.loop.execute { call.respond { $0.append([7]) } }
        let transcript = client.readAll()
        expectEqual(transcript.answers[early]?.messages, [[7]])
        expectNil(transcript.answers[late])
        expectEqual(drained.wait(), true)
    }

    @Test func `A drain gives up calls that do not finish in time`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        let stream = client.request(.commit, [1])
        expect(live.record.reaches { $0.pending.count == 1 })
        let drained = Promise<Bool>()
        live.server.drain(graceMilliseconds: 20) { drained.fulfil(true) }
        let answer = client.answer(stream)
        expectEqual(answer.status, 14)
        expectEqual(answer.text, "the server is shutting down")
        expect(!client.readAll().goAways.isEmpty)
        expectEqual(drained.wait(), true)
        expectEqual(live.record.state.withLock { $0.cancelled }, [.connectionClosed])
    }

    @Test func `A client that says goodbye is closed when its calls are over`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        let stream = client.request(.getDocument, [1])
        client.send(HTTP2Frame(.goAway, bigEndian(0) + bigEndian(0)))
        expectEqual(client.readAll().answers[stream]?.messages, [[1]])
    }
}
