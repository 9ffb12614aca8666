// What the port answers over HTTP/1.1, and over HTTP/2 beside gRPC: pages for operators and load balancers, REST, and
// what the emulator's tools ask for.
//
//     GET  /                    Ok
//     GET  /livez  /readyz      whether the process runs; whether it takes work
//     GET  /metrics             docs/metrics.md
//     GET  /hearth-auth.js      AuthScript
//     *    /console/...         ConsoleHandler
//     *    /v1/projects/...     docs/rest.md; also as /v1beta1
//     *    /emulator/v1/...     EmulatorHandler
//     *    /emulators           EmulatorHub
//     POST /token               TokenEndpoint
//     *    /google.firestore.v1.Firestore/METHOD/channel   WebChannelHandler

internal import Authorization
internal import Basics
internal import Calls
internal import FirestoreJSON
internal import FirestoreService
package import HTTPProtocols
internal import Identity

/// The HTTP side of one loop.
package final class HTTPRequestHandler: HTTPHandler {
    private let pages: ServerPages
    private let rest: RESTHandler
    private let webChannel: WebChannelHandler
    private let options: HTTPOptions
    private let authorization: Authorization?
    private let emulator: EmulatorHandler
    private let console: ConsoleHandler?
    private let clients: KnownClients?

    /// - Parameters:
    ///   - calls: takes the calls of REST and WebChannel, whichever service they are for.
    ///   - sessions: those of WebChannel, of all loops.
    ///   - authorization: decides who may do what; nil permits everything.
    ///   - address: `HOST:PORT` of the server, once it runs.
    ///   - bodies: reads the JSON of REST and WebChannel.
    ///   - console: nil serves none.
    init(
        calls: CallRouter, pages: ServerPages, sessions: WebChannelTable, options: HTTPOptions,
        authorization: Authorization?, address: @escaping @Sendable () -> String, bodies: JSONBodies,
        console: ConsoleHandler? = nil, clients: KnownClients? = nil
    ) {
        self.clients = clients
        self.console = console
        self.authorization = authorization
        emulator = EmulatorHandler(calls, options, authorization, address: address)
        self.pages = pages
        self.options = options
        rest = RESTHandler(calls, bodies)
        webChannel = WebChannelHandler(sessions, calls, bodies)
    }

    package func handle(_ exchange: HTTPExchange, _ head: HTTPHead, body: RawSpan) {
        for field in fields(ofRefusal: head, isSecure: exchange.isSecure) { exchange.addField(field.name, field.value) }
        guard options.allowedHosts.admit(exchange, head), options.origins(for: head).admit(exchange, head) else {
            return
        }
        var head = head
        do throws(RequestError) {
            try HeadersInQuery.add(to: &head)
        } catch {
            return exchange.fail(error)
        }
        if let authorization = head.value(of: "authorization") { exchange.supplyAuthorization(authorization) }
        let segments = URLText.segments(head.pathBytes)
        switch segments.first {
        case "v1", "v1beta1":
            clients?.note(head)
            rest.handle(exchange, head, Array(segments.dropFirst()), body: body)
        case WebChannelHandler.pathPrefix:
            if head.method == .post { clients?.note(head, kind: .web) }
            webChannel.handle(exchange, head, Array(segments.dropFirst()), body: body)
        case "emulator": emulator.handle(exchange, head, Array(segments.dropFirst()), body: body)
        case let prefix? where EmulatorHub.prefixes.contains(prefix): emulator.handleHub(exchange, head, segments)
        case "console" where console != nil: console?.handle(exchange, head, Array(segments.dropFirst()), body: body)
        case "token" where segments.count == 1: TokenEndpoint.answer(exchange, head, body: body, authorization)
        default: page(exchange, head)
        }
    }

    package func fields(ofRefusal head: HTTPHead, isSecure: Bool) -> [HTTPField] {
        let fields = options.origins(for: head).fields(for: head)
        guard isSecure, options.hstsSeconds > 0 else { return fields }
        return fields + [HTTPField("Strict-Transport-Security", "max-age=\(options.hstsSeconds)")]
    }

    private func page(_ exchange: HTTPExchange, _ head: HTTPHead) {
        guard let page = ServerPages.Page(path: head.pathBytes) else {
            return exchange.fail(RequestError(.notFound, "There is no resource at this path."))
        }
        guard ServerPages.permits(head.method, exchange) else { return }
        do throws(RequestError) {
            if page == .metrics { try admitToMetrics(exchange.origin(head)) }
        } catch {
            return exchange.fail(error)
        }
        let isObserver = page != .readyz || authorization?.permits(exchange.origin(head), for: .observation) ?? true
        pages.answer(page, exchange, withReasons: isObserver)
    }

    private func admitToMetrics(_ origin: RequestOrigin) throws(RequestError) {
        guard options.servesMetrics else {
            throw RequestError(.notFound, "This server has its metrics at the address of --metrics-address.")
        }
        try authorization?.admit(origin, for: .observation)
    }
}

/// What can be chosen about HTTP.
package struct HTTPOptions: Sendable {
    /// The names that clients may know this server by.
    package var allowedHosts = AllowedHosts.any
    /// Whose pages may call from a browser.
    package var allowedOrigins = AllowedOrigins.local
    /// Whether the emulator's DELETE of a whole database is served.
    package var emulatorEndpoints = false
    /// The emulator's exports and imports, which use files that a caller names; nil refuses them. For a loopback
    /// address alone.
    package var emulatorFiles: EmulatorFiles?
    /// Whether `/console` is served.
    package var servesConsole = true
    /// Into which directory the console may have backups written, each into a new one; nil refuses them.
    package var backupDirectory: String?
    /// For how many seconds browsers are asked to use encrypted connections alone (RFC 6797); 0 asks for nothing. Only
    /// replies over encrypted connections ask.
    package var hstsSeconds = 0
    /// Whether `/metrics` is served here, and not on a port for observation.
    var servesMetrics = true

    package init() {}

    /// The origins that count for a request: the console's own page may call, whatever address it was opened by.
    func origins(for head: HTTPHead) -> AllowedOrigins {
        servesConsole && allowedHosts.isOwnPage(head) ? .any : allowedOrigins
    }
}

extension HTTPExchange {
    /// What a request shows of its sender.
    func origin(_ head: HTTPHead) -> RequestOrigin { origin(authorization: head.value(of: "authorization")) }
}
