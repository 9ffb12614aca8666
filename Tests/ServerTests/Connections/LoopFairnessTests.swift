// Clients of one loop beside each other. The tests run the loop iteration by iteration on their own thread, with a
// clock that they step. Between two iterations they read and write the other ends of the sockets.

import Basics
import ConnectionTestSupport
import DocumentModel
import FirestoreJSON
import Glibc
import Synchronization
import TLS
import TLSTestSupport
import TestSupport
import Testing

@testable import Calls
@testable import Connections
@testable import EventLoops
@testable import NativeProtocol
@testable import Server

@Suite(.timeLimit(.minutes(20)))
struct LoopFairnessTests {
    /// Nanoseconds that move only when a test sets them. The loop's thread is that of the test.
    private final class Clock: @unchecked Sendable {
        var now: UInt64 = 1
        /// Nanoseconds that each look at the clock takes.
        var step: UInt64 = 0

        func read() -> UInt64 {
            now += step
            return now
        }
    }

    /// A loop of the calling thread, and a server on it.
    private final class Fixture {
        let clock: Clock
        let loop: EventLoop
        let server: ServerLoop
        let record = EchoService.Record()

        init(
            _ clock: Clock = Clock(), service: (any ServiceHandler)? = nil,
            configuration: ServerConfiguration = ServerConfiguration()
        ) {
            self.clock = clock
            loop = EventLoop(name: "test", clock: { clock.read() })
            server = ServerLoop(
                loop: loop, configuration: configuration, rpcs: TestProcedures.table, shared: ServerShared(),
                services: LoopServices(calls: service ?? EchoService(record: record)))
        }

        /// One iteration, which does not wait.
        func iterate() {
            var isDone = false
            loop.execute {}
            loop.run {
                defer { isDone = true }
                return isDone
            }
        }

        func connect() -> Peer { Peer(server) }
    }

    /// The client's end of a connection.
    private final class Peer {
        private let descriptor: Int32
        private var bytes: [UInt8] = []
        private var nextStream: UInt32 = 1

        /// - Parameter isSecure: whether TLS comes first.
        init(_ server: ServerLoop, isSecure: Bool = false) {
            var ends: [Int32] = [-1, -1]
            precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
            descriptor = ends[1]
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            server.adopt(ends[0])
            if !isSecure { send(Self.hello) }
        }

        static var hello: [UInt8] {
            var settings = Settings()
            settings.initialWindowBytes = FlowWindow.max
            var hello = ByteBuffer(capacity: 64)
            hello.append(Preface.hearth)
            settings.appendHello(to: &hello)
            return hello.copyBytes()
        }

        /// Bytes that were sent and that the server has not read.
        var unreadBytes: Int {
            var count: Int32 = 0
            precondition(ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0)
            return Int(count)
        }

        /// What has come since it was asked last.
        func takeBytes() -> [UInt8] {
            _ = drain()
            defer { bytes = [] }
            return bytes
        }

        deinit { close(descriptor) }

        func send(_ bytes: [UInt8]) {
            let sent = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            precondition(sent == bytes.count, "the kernel takes the requests of a test at once")
        }

        /// Sends requests in one write.
        func request(_ rpc: RPC, _ payloads: [UInt8]...) { request(rpc, payloads) }

        func request(_ rpc: RPC, _ payloads: [[UInt8]]) {
            send(
                payloads.flatMap { payload in
                    defer { nextStream += 2 }
                    return TestFrame.request(rpc, stream: nextStream, payload).bytes
                })
        }

        /// Reads what has come; the number of its bytes.
        func drain() -> Int {
            var count = 0
            var buffer = [UInt8](repeating: 0, count: 1 << 20)
            while true {
                let got = recv(descriptor, &buffer, buffer.count, 0)
                guard got > 0 else { return count }
                count += got
                bytes += buffer[..<got]
            }
        }

        /// The payloads of the messages that have come since it was asked last.
        func messages() -> [[UInt8]] {
            _ = drain()
            let frames = TestFrame.all(in: bytes)
            bytes.removeFirst(frames.reduce(0) { $0 + $1.bytes.count })
            return frames.filter { $0.kind == FrameKind.message.rawValue }.map(\.payload)
        }

        func forget() { bytes = [] }
    }

    /// Streams messages of one size without end; each takes time.
    private final class SlowService: ServiceHandler {
        let clock: Clock
        let nanoseconds: UInt64
        private(set) var asked: [ObjectIdentifier: Int] = [:]
        private(set) var begun = 0

        init(_ clock: Clock, nanoseconds: UInt64) {
            self.clock = clock
            self.nanoseconds = nanoseconds
        }

        func begin(_ call: Call, payload: RawSpan) {
            begun += 1
            switch call.rpc {
            case .runQuery: call.stream(Source(self, ObjectIdentifier(call.carrier)))
            default:
                clock.now += nanoseconds
                call.respond { $0.append(payload) }
            }
        }

        private final class Source: ResponseSource {
            private let service: SlowService
            private let connection: ObjectIdentifier

            init(_ service: SlowService, _ connection: ObjectIdentifier) {
                self.service = service
                self.connection = connection
            }

            func next(into output: inout ByteBuffer) -> SourceStep {
                service.clock.now += service.nanoseconds
                service.asked[connection, default: 0] += 1
                output.append([1, 2, 3, 4])
                return .message
            }

            func cancelled() {}
        }
    }

    private static let endless = littleEndianBytes(.max, 1_000)

    @Test func `A neighbour's request is read between two iterations of bounded output`() {
        let fixture = Fixture()
        let readers = (0..<24).map { _ in fixture.connect() }
        let neighbour = fixture.connect()
        fixture.iterate()
        for reader in readers { reader.request(.runQuery, Array(repeating: Self.endless, count: 59)) }
        var received = readers.map { _ in 0 }
        for turn in 0..<60 {
            neighbour.request(.getDocument, [UInt8(turn)])
            fixture.iterate()
            expectEqual(neighbour.messages(), [[UInt8(turn)]], "iteration \(turn)")
            var sum = 0
            for (index, reader) in readers.enumerated() {
                let count = reader.drain()
                reader.forget()
                sum += count
                received[index] += count
            }
            // The last share may end a message later, and each message has its header.
            expect(sum <= (IterationBudget.iterationBytes + IterationBudget.shareBytes) * 11 / 10, "iteration \(turn)")
        }
        let least = received.min() ?? 0
        let most = received.max() ?? 0
        expect(least > 0, "no connection starves: \(received)")
        expect(most - least <= 2 * IterationBudget.shareBytes, "the rotation is fair: \(received)")
    }

    @Test func `Streams that take long share the time of the iterations`() {
        let clock = Clock()
        let service = SlowService(clock, nanoseconds: IterationBudget.iterationNanoseconds / 2)
        let fixture = Fixture(clock, service: service)
        let readers = (0..<10).map { _ in fixture.connect() }
        let neighbour = fixture.connect()
        fixture.iterate()
        for reader in readers { reader.request(.runQuery, Array(repeating: [], count: 5)) }
        for turn in 0..<200 {
            neighbour.request(.getDocument, [UInt8(turn)])
            let asked = service.asked.values.reduce(0, +)
            fixture.iterate()
            expectEqual(neighbour.messages(), [[UInt8(turn)]], "iteration \(turn)")
            expect(service.asked.values.reduce(0, +) - asked <= 20, "iteration \(turn)")
            for reader in readers {
                _ = reader.drain()
                reader.forget()
            }
        }
        expectEqual(service.asked.count, readers.count, "no connection starves")
        let counts = service.asked.values.sorted()
        expect(counts[counts.count - 1] - counts[0] <= 20, "the rotation is fair: \(counts)")
    }

    @Test func `A client that sends many requests at once does not hold up the input of others`() {
        let clock = Clock()
        let service = SlowService(clock, nanoseconds: IterationBudget.inputNanoseconds / 8)
        let fixture = Fixture(clock, service: service)
        let busy = fixture.connect()
        let neighbour = fixture.connect()
        fixture.iterate()
        let count = 400
        busy.request(.getDocument, (0..<count).map { littleEndianBytes(UInt32($0)) })
        neighbour.request(.getDocument, [9])
        fixture.iterate()
        expectEqual(neighbour.messages(), [[9]])
        expect(service.begun < 100, "the first iteration has served \(service.begun) calls")
        var replies: [[UInt8]] = []
        for _ in 0..<count where replies.count < count {
            fixture.iterate()
            replies += busy.messages()
        }
        expectEqual(replies, (0..<count).map { littleEndianBytes(UInt32($0)) }, "each call is served once, in order")
    }

    @Test func `Records of TLS that bring next to nothing do not hold up the loop`() throws {
        let authority = TestAuthority()
        let issued = authority.issue(["IP:127.0.0.1"])
        let context = try TLSContext(
            server: TLSServerSettings(
                credential: TLSCredential(certificates: issued.certificate, key: issued.key.privatePEM),
                protocols: SocketServer.protocolNames), tickets: TicketKeys { 1 })
        var configuration = ServerConfiguration()
        configuration.tls = ServerTLS { context }
        let fixture = Fixture(configuration: configuration)
        let peer = Peer(fixture.server, isSecure: true)
        let session = try TLSSession(
            client: try TLSContext(
                client: TLSClientSettings(
                    authorities: .certificates(authority.certificate), protocols: [Preface.protocolName])),
            serverName: "127.0.0.1")
        func sendOutput() {
            var output = ByteBuffer(capacity: 0)
            session.takeOutput(into: &output)
            if output.count > 0 { peer.send(output.copyBytes()) }
        }
        func send(_ bytes: [UInt8], recordBytes: Int = 16_384) throws {
            for start in stride(from: 0, to: bytes.count, by: recordBytes) {
                let record = Array(bytes[start...].prefix(recordBytes))
                let count = try session.send(record.byteSpan)
                expectEqual(count, record.count)
            }
            sendOutput()
        }
        var plain = ByteBuffer(capacity: 0)
        func receive() throws {
            fixture.iterate()
            let bytes = peer.takeBytes()
            try session.receive(bytes.byteSpan, into: &plain)
            sendOutput()
        }
        sendOutput()
        for _ in 0..<10 where session.handshake == nil { try receive() }
        // A frame that is too long to be looked at before it has come.
        let frame = TestFrame.request(.getDocument, stream: 1, [UInt8](repeating: 1, count: 200_000)).bytes
        try send(Peer.hello + frame[..<100])
        try receive()
        try send(Array(frame[100..<5_100]), recordBytes: 1)
        let sent = peer.unreadBytes
        // The slice of the input is over when a read has been looked at.
        fixture.clock.step = IterationBudget.inputNanoseconds
        fixture.iterate()
        expect(peer.unreadBytes > 0, "one iteration has read all of \(sent) bytes")
        for _ in 0..<100 where peer.unreadBytes > 0 { fixture.iterate() }
        expectEqual(peer.unreadBytes, 0)
        fixture.clock.step = 0
        for start in stride(from: 5_100, to: frame.count, by: 50_000) {
            try send(Array(frame[start...].prefix(50_000)))
            try receive()
        }
        for _ in 0..<100 where plain.count < 200_000 { try receive() }
        let count = plain.count
        expect(count > 200_000, "the whole frame gets its answer")
    }

    @Test func `Work handed over by other threads is done in order, and in parts if it takes long`() {
        let fixture = Fixture()
        let clock = fixture.clock
        let done = Mutex<[Int]>([])
        let step = { @Sendable (number: Int) in done.withLock { $0.append(number) } }
        for number in 0..<1_000 {
            fixture.loop.execute {
                step(number)
                clock.now += IterationBudget.iterationNanoseconds / 4
            }
        }
        fixture.iterate()
        let first = done.withLock { $0.count }
        expect(first < 100)
        for _ in 0..<1_000 where done.withLock({ $0.count < 1_000 }) { fixture.iterate() }
        expectEqual(done.withLock { $0 }, Array(0..<1_000))
    }

    @Test func `Work that comes while earlier work is done in parts is done without a further signal`() {
        let fixture = Fixture()
        let (loop, clock) = (fixture.loop, fixture.clock)
        let isDone = Atomic(false)
        for number in 0..<40 {
            loop.execute {
                clock.now += IterationBudget.iterationNanoseconds
                if number == 3 { loop.execute { isDone.store(true, ordering: .relaxed) } }
            }
        }
        var isLate = false
        let limit = loop.schedule(afterMilliseconds: 60_000) { isLate = true }
        loop.run { isLate || isDone.load(ordering: .relaxed) }
        loop.cancel(limit)
        expect(!isLate)
    }

    // MARK: JSON

    /// Counts its shares.
    private final class Neighbour: LoopWork {
        private let loop: EventLoop
        private(set) var shares = 0

        init(_ loop: EventLoop) { self.loop = loop }

        func work() {
            shares += 1
            loop.needsWork(self)
        }
    }

    private static let list = "google.firestore.v1.ArrayValue"

    private static func numbers(_ count: Int) -> [UInt8] {
        let values = (0..<count).map { "{\"integerValue\": \($0)}" }
        return Array("{\"values\": [\(values.joined(separator: ","))]}".utf8)
    }

    /// Reads a body on a loop whose clock advances with each look at it, beside work that always wants a share.
    ///
    /// - Returns: the message or the error, nil if there was none after 1,000 iterations; and how many shares the other
    ///   work had had by then.
    private static func read(
        _ body: [UInt8], with bodies: JSONBodies = JSONBodies(), staysWanted: Bool = true
    ) -> (outcome: Result<[UInt8], RequestError>?, shares: Int) {
        let clock = Clock()
        let loop = EventLoop(
            name: "test",
            clock: {
                clock.now += 200_000
                return clock.now
            })
        let neighbour = Neighbour(loop)
        loop.needsWork(neighbour)
        var outcome: Result<[UInt8], RequestError>?
        var isWanted = true
        bodies.read(
            body.byteSpan, Schema.shared.message(list), onto: ByteBuffer(), on: loop, while: { isWanted }
        ) { outcome = $1.map { .failure($0) } ?? .success($0.copyBytes()) }
        isWanted = staysWanted
        for _ in 0..<1_000 where outcome == nil {
            var isDone = false
            loop.run {
                defer { isDone = true }
                return isDone
            }
        }
        return (outcome, neighbour.shares)
    }

    @Test
    func `A large JSON body is read in shares, between those of others`() throws {
        let body = Self.numbers(20_000)
        var reader = JSONMessageReader()
        var expected = ByteBuffer()
        try reader.append(body.byteSpan, Schema.shared.message(Self.list), to: &expected)
        let (outcome, shares) = Self.read(body)
        try expectEqual(outcome?.get(), expected.copyBytes())
        expect(shares > 20)
        // A small one is read at once.
        let small = Self.read(Self.numbers(10))
        expect(small.outcome != nil && small.shares == 0)
    }

    @Test
    func `Errors of a large JSON body have their place, and one that is no longer wanted is given up`() {
        let (outcome, _) = Self.read(Self.numbers(20_000).dropLast() + Array(",}".utf8))
        guard case .failure(let error)? = outcome else {
            Issue.record("\(outcome as Any)")
            return
        }
        expect(error.code == .invalidArgument && error.message.contains("byte"), "\(error)")
        let bodies = JSONBodies()
        expectNil(Self.read(Self.numbers(20_000), with: bodies, staysWanted: false).outcome)
        expectEqual(bodies.heldBytes, 0)
    }

    @Test
    func `Large JSON bodies beyond a limit of bytes are refused`() {
        let body = Self.numbers(2_000)
        let (outcome, shares) = Self.read(body, with: JSONBodies(heldBytesMax: body.count - 1))
        guard case .failure(let error)? = outcome else {
            Issue.record("\(outcome as Any)")
            return
        }
        expect(error.code == .resourceExhausted && shares == 0)
    }
}
