// When a back channel ends early: the rule, beside a model of a browser with six connections.

import Basics
import Synchronization
import TestSupport
import Testing

@testable import Calls
@testable import EventLoops
@testable import HTTPProtocols

@Suite(.timeLimit(.minutes(20))) struct BackChannelRotationTests {
    private static let connections = BackChannelRotation.connectionsOfBrowser

    /// A browser: requests take the first free connection, in the order in which the pages sent them.
    private struct Browser {
        enum Request: Equatable {
            case backChannel(UInt64)
            case message(sentAt: UInt64)
        }

        var rotation = BackChannelRotation()
        private var queue: [Request] = []
        private(set) var open: [UInt64] = []
        private(set) var longestWaitOfMessage: UInt64 = 0
        private(set) var messagesServed = 0
        private(set) var ended = 0
        private(set) var openedAt: [UInt64: UInt64] = [:]
        var now: UInt64 = 1_000_000

        init(sessions: UInt64) {
            for session in 0..<sessions {
                rotation.add(session)
                queue.append(.backChannel(session))
            }
            serve()
        }

        mutating func send() {
            queue.append(.message(sentAt: now))
            serve()
        }

        /// The page is closed; the server does not notice.
        mutating func leave(_ session: UInt64) { queue.removeAll { $0 == .backChannel(session) } }

        mutating func step(milliseconds: UInt64) {
            for _ in 0..<milliseconds {
                now += 1
                while let session = rotation.takeDue(now: now) {
                    ended += 1
                    open.removeAll { $0 == session }
                    // The connection is free before the page asks again.
                    serve()
                    queue.append(.backChannel(session))
                    serve()
                }
            }
        }

        /// A response to a message comes at once and frees its connection.
        private mutating func serve() {
            while open.count < BackChannelRotationTests.connections, !queue.isEmpty {
                switch queue.removeFirst() {
                case .backChannel(let session):
                    open.append(session)
                    openedAt[session] = now
                    rotation.opened(session)
                case .message(let sentAt):
                    longestWaitOfMessage = max(longestWaitOfMessage, now - sentAt)
                    messagesServed += 1
                    rotation.heard(now: now)
                }
            }
        }
    }

    @Test func `Below six nothing ends`() {
        var browser = Browser(sessions: 5)
        expectNil(browser.rotation.dueAt)
        for _ in 0..<10 {
            browser.send()
            browser.step(milliseconds: 1_000)
        }
        expect(browser.ended == 0 && browser.longestWaitOfMessage == 0)
    }

    @Test func `The oldest of six ends at each interval, which is shorter while messages come`() {
        var browser = Browser(sessions: 6)
        browser.step(milliseconds: 1)
        expectEqual(browser.open, [1, 2, 3, 4, 5, 0])
        browser.step(milliseconds: 499)
        expectEqual(browser.ended, 1)
        browser.step(milliseconds: 1)
        expectEqual(browser.open, [2, 3, 4, 5, 0, 1])
        browser.send()
        browser.step(milliseconds: 500)
        expect(browser.messagesServed == 1 && browser.ended == 3)
        browser.step(milliseconds: 1_000)
        expectEqual(browser.ended, 13)
        // Ten seconds after the message.
        browser.step(milliseconds: 9_500)
        let ended = browser.ended
        browser.step(milliseconds: 10_000)
        expectEqual(browser.ended, ended + 20)
    }

    @Test(arguments: [6, 7, 10, 16, 24]) func `A message waits for one interval, however many sessions there are`(
        sessions: UInt64
    ) {
        for seed in CaseShare.of(UInt64(0)..<20, 1) {
            var random = SeededGenerator(seed: seed)
            var browser = Browser(sessions: sessions)
            for _ in 0..<20 {
                browser.step(milliseconds: UInt64.random(in: 0...15_000, using: &random))
                browser.send()
            }
            browser.step(milliseconds: 1_000)
            expectEqual(browser.messagesServed, 20, "seed \(seed)")
            let quiet = BackChannelRotation.quietMilliseconds
            expect(browser.longestWaitOfMessage <= quiet + sessions, "seed \(seed)")
            // Each session has had its turn.
            let oldest = browser.openedAt.values.min() ?? 0
            expect(browser.openedAt.count == Int(sessions) && browser.now - oldest <= 6 * quiet, "seed \(seed)")
        }
    }

    @Test(arguments: [6, 10, 24]) func `A quiet browser costs two requests a second, and as many for each that waits`(
        sessions: UInt64
    ) {
        var browser = Browser(sessions: sessions)
        browser.step(milliseconds: 100_000)
        expect(200...202 ~= browser.ended / Int(sessions - 5))
    }

    @Test func `A session whose page is gone does not count for long`() {
        var browser = Browser(sessions: 30)
        for session in UInt64(10)..<30 { browser.leave(session) }
        // Those that are left have had several turns.
        browser.step(milliseconds: 60_000)
        expectEqual(browser.rotation.waitingCount, 4)
        let ended = browser.ended
        browser.step(milliseconds: 10_000)
        expect(99...101 ~= browser.ended - ended)
    }

    @Test func `Many browsers that look like one have a bound`() {
        var rotation = BackChannelRotation()
        for session in UInt64(0)..<5_000 {
            rotation.add(session)
            rotation.opened(session)
        }
        var ended: [UInt64] = []
        for now in UInt64(1)...10_000 {
            rotation.heard(now: now)
            guard let session = rotation.takeDue(now: now) else { continue }
            ended.append(session)
            rotation.opened(session)
        }
        expectEqual(ended, Array(0..<500))
    }

    @Test func `A back channel that ends or whose session ends is not asked to`() {
        var rotation = BackChannelRotation()
        for session in UInt64(0)..<8 {
            rotation.add(session)
            rotation.opened(session)
        }
        rotation.closed(0)
        rotation.remove(1)
        expectEqual(rotation.takeDue(now: 1_000_000), 2)
        // The end of the response is reported after that.
        rotation.closed(2)
        expectEqual(rotation.waitingCount, 2)
        expectNil(rotation.takeDue(now: 2_000_000))
        rotation.opened(0)
        expectEqual(rotation.takeDue(now: 2_000_000), 3)
    }

    @Test func `A session that has ended is forgotten`() {
        let loop = EventLoop()
        let table = WebChannelTable()
        let service = NoService()
        let sessions = (0..<3).map { number in
            let origin = WebChannelOrigin(database: "", authorization: nil, browser: number / 2)
            let session = WebChannelConnection(
                "\(number)", RPC(number: 1, shape: .bidirectional), service, in: table, loop: loop, peerAddress: "",
                origin)
            session.start()
            return session
        }
        expectEqual(table.browsers.count, 2)
        for session in sessions { session.terminate() }
        let isDone = Mutex(false)
        loop.execute { isDone.withLock { $0 = true } }
        loop.run { isDone.withLock { $0 } }
        expectEqual(table.browsers.count, 0)
    }

    private final class NoService: WebChannelService {
        func begin(_ call: Call, _ message: RawSpan) {}
        func abandoned(_ reason: CancellationReason) {}
        func ended(_ session: WebChannelConnection) {}
        func appendDatabase(_ name: String, to output: inout ByteBuffer) {}
        func readMessage(
            _ json: RawSpan, onto output: consuming ByteBuffer, on loop: EventLoop,
            while isWanted: @escaping () -> Bool, _ done: @escaping (consuming ByteBuffer, RequestError?) -> Void
        ) { done(output, nil) }
        func appendJSON(_ message: RawSpan, to output: inout ByteBuffer) throws(RequestError) {}
    }
}
