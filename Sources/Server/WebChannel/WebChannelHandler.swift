// The HTTP side of WebChannel: routes the requests of pages to their sessions.
//
//     POST .../Listen/channel?VER=8&...                opens a session with its first messages
//     POST .../Listen/channel?VER=8&SID=...            brings messages
//     GET  .../Listen/channel?VER=8&SID=...&RID=rpc    opens a back channel
//     POST .../Listen/channel?VER=8&SID=...&TYPE=terminate

internal import Authorization
internal import Basics
internal import Calls
internal import FirestoreJSON
internal import FirestoreMessages
internal import FirestoreService
internal import HTTPProtocols

/// Serves `/google.firestore.v1.Firestore/{METHOD}/channel` on one loop, for each bidirectional method of Firestore.
final class WebChannelHandler {
    /// The first segment of the paths.
    static let pathPrefix = "google.firestore.v1.Firestore"
    private static let textPlain = "text/plain; charset=utf-8"

    private let table: WebChannelTable
    private let calls: CallRouter
    private let services: [String: (method: Method, messages: WebChannelMessages)]

    init(_ table: WebChannelTable, _ calls: CallRouter, _ bodies: JSONBodies) {
        self.table = table
        self.calls = calls
        let methods = Method.ofFirestore.filter { $0.shape == .bidirectional }
        services = Dictionary(
            uniqueKeysWithValues: methods.map { ($0.name, ($0, WebChannelMessages($0, calls, bodies))) })
    }

    /// - Parameter segments: of the path, after ``pathPrefix``.
    func handle(_ exchange: HTTPExchange, _ head: HTTPHead, _ segments: [String], body: RawSpan) {
        guard segments.count == 2, segments[1] == "channel", let found = services[segments[0]] else {
            return exchange.fail(RequestError(.notFound, "There is no resource at this path."))
        }
        guard head.method == .get || head.method == .post else {
            exchange.addField("Allow", "GET, POST")
            return exchange.reply(.methodNotAllowed, "Only GET and POST are allowed.\n")
        }
        exchange.addField(
            "Access-Control-Expose-Headers", "x-client-wire-protocol, x-http-session-id, x-http-initial-response")
        do throws(RequestError) {
            let request = try WebChannelRequest(isPost: head.method == .post, query: head.queryBytes)
            guard request.kind != .open else { return try open(exchange, head: head, request, found, body: body) }
            guard let session = table.session(request.session), session.rpc == found.method.rpc,
                continues(session.origin, request, exchange, head)
            else { throw .unknownSession }
            try serve(exchange, request, session, body)
        } catch {
            refuse(exchange, error)
        }
    }

    /// Whether a request is of the user and about the database with which its session was opened. The SDK names both
    /// when it opens a session; what a later request does not name is the same.
    private func continues(
        _ opened: WebChannelOrigin, _ request: WebChannelRequest, _ exchange: HTTPExchange, _ head: HTTPHead
    ) -> Bool {
        guard request.database.isEmpty || request.database.utf8.elementsEqual(opened.database.utf8) else {
            return false
        }
        guard let authorization = calls.authorization, let shown = head.value(of: "authorization"),
            shown != opened.authorization
        else { return true }
        // A user's next token is another text.
        guard let caller = opened.caller, let other = authorization.identity(of: exchange.origin(authorization: shown))
        else { return false }
        return caller.utf8.elementsEqual(other.utf8)
    }

    private func serve(
        _ exchange: HTTPExchange, _ request: WebChannelRequest, _ session: WebChannelConnection, _ body: RawSpan
    ) throws(RequestError) {
        switch request.kind {
        case .open: break
        case .terminate:
            session.terminate()
            exchange.reply(.ok, contentType: Self.textPlain) { _ in }
        case .back(let hold):
            exchange.addField("X-Content-Type-Options", "nosniff")
            exchange.addField("Cache-Control", "private, max-age=0")
            session.openBackChannel(exchange, holdMilliseconds: hold, acknowledged: request.acknowledged ?? 0)
        case .forward:
            let post = try WebChannelPost(body)
            session.receive(post, acknowledged: request.acknowledged, for: exchange) { reply in
                guard let reply else {
                    return exchange.reply(.badRequest, RequestError.unknownSession.message)
                }
                exchange.reply(.ok, contentType: Self.textPlain) { $0.append(reply) }
            }
        }
    }

    /// Opens a session and gives it the messages of this request.
    private func open(
        _ exchange: HTTPExchange, head: HTTPHead, _ request: WebChannelRequest,
        _ found: (method: Method, messages: WebChannelMessages), body: RawSpan
    ) throws(RequestError) {
        let post = try WebChannelPost(body)
        guard post.offset == 0 else { throw .unknownSession }
        var head = head
        try HeadersInQuery.add(post.headers, named: "headers", to: &head)
        let authorization = calls.authorization == nil ? nil : head.value(of: "authorization")
        guard calls.streams.isServing else {
            throw RequestError(.unavailable, "the server is draining")
        }
        var origin = WebChannelOrigin(
            database: request.database, authorization: authorization, browser: Self.browser(exchange, head),
            of: exchange)
        origin.caller = calls.authorization?.identity(of: exchange.origin(authorization: authorization))
        let session = try table.open(found.method.rpc, found.messages, for: exchange, origin)
        calls.streams.insert(session)
        let handshake = session.handshake
        session.receive(post, acknowledged: nil, for: exchange) { _ in
            exchange.reply(.ok, contentType: Self.textPlain) { $0.append(handshake) }
        }
    }

    /// A number that is equal for all pages of one browser, which shares its connections among them.
    private static func browser(_ exchange: HTTPExchange, _ head: HTTPHead) -> Int {
        let peer = exchange.peerAddress
        var hasher = Hasher()
        // Without the port, which each connection has its own of.
        hasher.combine(peer[..<(peer.lastIndex(of: ":") ?? peer.endIndex)])
        for name in ["x-forwarded-for", "user-agent", "host"] { hasher.combine(head.value(of: name)) }
        return hasher.finalize()
    }

    /// The page finds the reason in the text.
    private func refuse(_ exchange: HTTPExchange, _ error: RequestError) {
        exchange.reply(HTTPStatus(error.code), error.message)
    }
}

extension WebChannelConnection: LongLivedStream {
    /// An open call ends by itself: its stream is one of the lasting ones too.
    func stopServing() {
        if !hasCall { fail(RequestError(.unavailable, "the server is draining")) }
    }
}
