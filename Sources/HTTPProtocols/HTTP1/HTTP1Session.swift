import Basics
import Connections

/// The server's side of one HTTP/1.1 connection as a value without I/O: bytes go in and actions come out, replies go
/// in and bytes come out.
///
///     received bytes ──▶ HTTP1Parser ──▶ .request ──▶ (handler) ──▶ appendWhole, or appendPart ... ──▶ endExchange
///
/// One exchange at a time: until its reply is whole, nothing more is taken, so what a client sends ahead stays in its
/// kernel and in the one read buffer.
struct HTTP1Session {
    /// What the connection has to do about received bytes.
    enum Action: Equatable {
        /// The bytes are used up to the offset; the rest is part of something.
        case needsMore
        /// A reply is awaited: show the rest when the exchange has ended.
        case awaitsReply
        /// The client waits before it sends the body: `100 Continue`.
        case sendContinue
        /// ``assemblyBytes`` has changed.
        case bodyGrew
        /// A request is whole. Its head is ``head``.
        case request(UInt32, Body)
        /// The bytes are not HTTP/1.1 as it is read here: refuse and close.
        case fail(HTTP1Violation)
    }

    /// The body of a request, without its chunked form.
    enum Body: Equatable {
        /// A range of the bytes received.
        case inBytes(Range<Int>)
        /// It came in pieces.
        case gathered([UInt8])
    }

    /// A request that waits for its reply.
    private struct Exchange {
        let reply: HTTPReply
        let keepsAlive: Bool
        let isChunkable: Bool
        /// Only the connection itself may still answer, and is about to.
        var isOpen = true
    }

    private var parser: HTTP1Parser
    private let keepsAuthorization: Bool
    /// The body so far, when it comes in more than one piece.
    private var body: [UInt8] = []
    private var exchange: Exchange?
    private var exchangeCount: UInt32 = 0
    private(set) var isDraining = false
    /// Whether a request had a header of a proxy.
    private(set) var hasProxiedRequests = false
    /// When the client was last heard, or the last reply ended; monotonic milliseconds.
    private(set) var heardAt: UInt64
    /// When the incomplete request began, in monotonic milliseconds.
    private var requestSince: UInt64?

    init(limits: HTTP1Limits, keepsAuthorization: Bool = false, now: UInt64 = 0) {
        parser = HTTP1Parser(limits: limits)
        self.keepsAuthorization = keepsAuthorization
        heardAt = now
    }

    /// The head of the request read last.
    var head: HTTPHead { parser.head }
    /// As much as has been read of the head of the request that is arriving.
    var headSoFar: HTTPHead { parser.headSoFar }
    var assemblyBytes: Int { body.count }
    /// Whether a request waits for its reply.
    var hasExchange: Bool { exchange != nil }
    /// Whether the reply under way asks that the connection is read meanwhile.
    var watchesClient: Bool { exchange?.reply.form?.watchesClient ?? false }
    /// The number of the exchange that still takes a reply.
    var openExchange: UInt32? { exchange.flatMap { $0.isOpen ? $0.reply.number : nil } }
    /// Whether the connection is drained: between exchanges, and nothing of a request has come.
    var isDrained: Bool { isDraining && exchange == nil && parser.isBetweenRequests }

    // MARK: Requests

    /// Takes bytes from `offset` on until there is something to do, and moves the offset past what it used.
    ///
    /// - Parameter now: monotonic milliseconds.
    mutating func receive(_ bytes: RawSpan, _ offset: inout Int, now: UInt64) -> Action {
        heardAt = now
        var whole = 0..<0
        while exchange == nil {
            let event: HTTP1Parser.Event
            do throws(HTTP1Violation) {
                event = try parser.next(bytes, &offset)
            } catch {
                return .fail(error)
            }
            switch event {
            case .incomplete:
                if requestSince == nil, !parser.isBetweenRequests || offset < bytes.byteCount { requestSince = now }
                return .needsMore
            case .head:
                requestSince = requestSince ?? now
                let expectsContinue = parser.head.expectsContinue && parser.head.body != .none
                if expectsContinue, offset == bytes.byteCount { return .sendContinue }
            case .body(let range) where body.isEmpty && parser.bodyIsWhole: whole = range
            case .body(let range):
                body.append(contentsOf: bytes.extracting(range))
                return .bodyGrew
            case .end: return beginExchange(whole)
            }
        }
        return .awaitsReply
    }

    private mutating func beginExchange(_ whole: Range<Int>) -> Action {
        requestSince = nil
        // Zero stands for no exchange.
        exchangeCount = exchangeCount == .max ? 1 : exchangeCount + 1
        let head = parser.head
        if head.isProxied { hasProxiedRequests = true }
        let reply = HTTPReply(number: exchangeCount, head: head, keepsAuthorization: keepsAuthorization)
        exchange = Exchange(reply: reply, keepsAlive: head.keepsAlive, isChunkable: head.minorVersion > 0)
        let gathered = body
        body = []
        return .request(exchangeCount, gathered.isEmpty ? .inBytes(whole) : .gathered(gathered))
    }

    /// Why the client is too slow with a request, if it is.
    func timeoutReason(now: UInt64, limit: UInt64) -> String? {
        guard exchange == nil, let since = requestSince,
            ArrivalTime.isOver(since: since, bytes: body.count, now: now, limit: limit)
        else { return nil }
        return "The request's \(parser.isInBody ? "body" : "head") did not arrive in time."
    }

    // MARK: Replies

    /// The reply of an exchange, answered or not.
    func reply(_ number: UInt32) -> HTTPReply? { exchange.flatMap { $0.reply.number == number ? $0.reply : nil } }

    func isOpen(_ number: UInt32) -> Bool { number != 0 && openExchange == number }

    /// The exchange takes no more answers from its handler.
    ///
    /// - Returns: whether it is a call; nil when it was over already.
    mutating func closeExchange(_ number: UInt32) -> Bool? {
        guard isOpen(number), let reply = exchange?.reply else { return nil }
        exchange?.isOpen = false
        return reply.form != nil
    }

    /// Begins an exchange for a reply that is to no request, after which the connection ends.
    mutating func beginLastReply(_ fields: [HTTPField]) -> HTTPReply {
        let reply = HTTPReply(number: 0, head: headSoFar, keepsAuthorization: false)
        reply.fields = fields
        exchange = Exchange(reply: reply, keepsAlive: false, isChunkable: true, isOpen: false)
        return reply
    }

    /// Appends a reply whose body is known.
    ///
    /// - Parameter date: the value of its `Date`.
    func appendWhole(
        _ reply: HTTPReply, _ status: HTTPStatus, contentType: String, _ content: RawSpan, date: String,
        to output: inout ByteBuffer
    ) {
        let about = "Content-Type: \(contentType)\r\nContent-Length: \(content.byteCount)\r\n"
        let length = status.isWithoutBody ? "" : about
        appendHead(reply, status, length, date, to: &output)
        if !reply.isHead, !status.isWithoutBody { output.append(content) }
    }

    /// Appends a part of a streaming reply, after its head if that has not been written.
    func appendPart(
        _ reply: HTTPReply, contentType: String, _ content: RawSpan, isLast: Bool, date: String,
        to output: inout ByteBuffer
    ) {
        let isChunkable = exchange?.isChunkable ?? true
        if !reply.hasBegun {
            let framing = isChunkable ? "Transfer-Encoding: chunked\r\n" : ""
            appendHead(reply, .ok, "Content-Type: \(contentType)\r\n\(framing)", date, to: &output)
        }
        reply.hasBegun = true
        guard !reply.isHead else { return }
        guard isChunkable else { return output.append(content) }
        if !content.isEmpty {
            output.append(utf8: String(content.byteCount, radix: 16))
            output.append(utf8: "\r\n")
            output.append(content)
            output.append(utf8: "\r\n")
        }
        if isLast { output.append(utf8: "0\r\n\r\n") }
    }

    private func appendHead(
        _ reply: HTTPReply, _ status: HTTPStatus, _ about: String, _ date: String, to output: inout ByteBuffer
    ) {
        output.append(utf8: "HTTP/1.1 \(status.code) \(status.phrase)\r\n")
        output.append(utf8: about)
        output.append(utf8: "Date: \(date)\r\n")
        for field in reply.fields { output.append(utf8: "\(field.name): \(field.value)\r\n") }
        if let exchange {
            if !staysOpen(after: exchange) {
                output.append(utf8: "Connection: close\r\n")
            } else if !exchange.isChunkable {
                output.append(utf8: "Connection: keep-alive\r\n")
            }
        }
        output.append(utf8: "\r\n")
    }

    /// The reply is whole.
    ///
    /// - Returns: whether the connection takes further requests; nil without an exchange.
    mutating func endExchange(now: UInt64) -> Bool? {
        guard let ended = exchange else { return nil }
        exchange = nil
        // Idle from now on, however long the reply took.
        heardAt = now
        return staysOpen(after: ended)
    }

    private func staysOpen(after exchange: Exchange) -> Bool {
        // A body that HTTP/1.0 streams has no other end than the connection's.
        exchange.keepsAlive && !isDraining && (exchange.isChunkable || exchange.reply.form?.isStreaming != true)
    }

    /// Replies from now on are the last of the connection.
    mutating func drain() { isDraining = true }
}
