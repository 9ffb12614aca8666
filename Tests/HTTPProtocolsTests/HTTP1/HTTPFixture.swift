// An HTTP handler for tests, and a server of it.

import Basics
import ConnectionTestSupport
import Synchronization
import TestSupport

@testable import Calls
@testable import Connections
@testable import EventLoops
@testable import HTTPProtocols
@testable import Server

/// Answers by path; what is not answered at once is left in the record.
final class TestHTTPHandler: HTTPHandler {
    final class Record: Sendable {
        let waiting = Mutex<[HTTPExchange]>([])
        let changed = Signal()
    }

    private let record: Record
    private let service: EchoService

    init(_ record: Record, _ service: EchoService) {
        self.record = record
        self.service = service
    }

    func handle(_ exchange: HTTPExchange, _ head: HTTPHead, body: RawSpan) {
        switch String(repairingUTF8: head.pathBytes) {
        case "/echo": exchange.reply(.ok) { $0.append(body) }
        case "/later":
            record.waiting.withLock { $0.append(exchange) }
            record.changed.notify()
        case "/call": service.begin(exchange.beginCall(.getDocument, TextForm(isStreaming: false)), payload: body)
        case "/stream":
            exchange.beginCall(.runQuery, TextForm(isStreaming: true)).stream(
                NumberSource(Int(String(repairingUTF8: body)) ?? 0))
        case "/head":
            exchange.addField("X-Origin", head.value(of: "origin") ?? "none")
            exchange.reply(
                .ok, "\(head.method) \(head.value(of: "host") ?? "no host") \(String(repairingUTF8: head.queryBytes))")
        case "/nothing": exchange.reply(.noContent, "")
        case "/fail": exchange.beginCall(.runQuery, TextForm(isStreaming: true)).fail(.notFound, "not here")
        case "/slow":
            let call = exchange.beginCall(.runQuery, TextForm(isStreaming: true), deadlineMilliseconds: 100)
            call.stream(NumberSource(.max))
        case "/silent": _ = exchange.beginCall(.runQuery, TextForm(isStreaming: false), deadlineMilliseconds: 20)
        default: exchange.reply(.notFound, "nothing")
        }
    }

    func fields(ofRefusal head: HTTPHead, isSecure: Bool) -> [HTTPField] {
        head.value(of: "origin").map { [HTTPField("X-Refused", $0)] } ?? []
    }
}

/// Messages as they are, between angle brackets.
final class TextForm: ReplyForm {
    let contentType = "text/x-test"
    let isStreaming: Bool

    init(isStreaming: Bool) { self.isStreaming = isStreaming }

    func append(_ message: RawSpan, isFirst: Bool, to body: inout ByteBuffer) {
        body.append(utf8: isFirst ? "<" : ">")
        body.append(message)
        if !isStreaming { body.append(utf8: ">") }
    }

    func appendEnd(isFirst: Bool, to body: inout ByteBuffer) { body.append(utf8: isFirst ? "<>" : ">.") }

    func appendError(_ error: RequestError, isFirst: Bool, to body: inout ByteBuffer) {
        body.append(utf8: "!\(error.code) \(error.message)")
    }
}

/// Counts up to a number, a message each, or fails at a negative one.
final class NumberSource: ResponseSource {
    private let end: Int
    private var next = 0

    init(_ end: Int) { self.end = end }

    func next(into output: inout ByteBuffer) -> SourceStep {
        if next == abs(end) { return end < 0 ? .failed(.aborted, "enough") : .finished }
        output.append(utf8: String(next))
        next += 1
        return .message
    }

    func cancelled() {}
}

/// A server of `TestHTTPHandler`, over HTTP/1.1 and HTTP/2.
final class HTTPFixture {
    let group = EventLoopGroup(count: 1, name: "test-http")
    let server: SocketServer
    let record = TestHTTPHandler.Record()

    init(_ configure: (inout ServerConfiguration) -> Void = { _ in }) throws {
        var configuration = ServerConfiguration()
        configure(&configuration)
        let record = record
        let service = EchoService(record: EchoService.Record())
        server = try SocketServer.start(
            configuration, rpcs: TestProcedures.table, on: group,
            makeServices: { _ in LoopServices(calls: service, http: TestHTTPHandler(record, service)) })
    }

    deinit { group.stop() }

    func connect() -> HTTPTestClient { HTTPTestClient(port: Int(server.port)) }

    func connectHTTP2(settings: (UInt16, UInt32)...) -> HTTP2Client {
        HTTP2Client(port: server.port, settings: settings)
    }

    /// The exchange that waits for a reply.
    func waitForExchange() -> HTTPExchange? {
        guard record.changed.wait(until: { record.waiting.withLock { !$0.isEmpty } }) else { return nil }
        return record.waiting.withLock { $0.popLast() }
    }
}
