// What the port answers over HTTP/1.1, and over HTTP/2 beside gRPC: pages for operators and load balancers, REST, and
// what the emulator's tools ask for.
//
//     GET  /                    Ok
//     GET  /livez  /readyz      whether the process runs; whether it takes work
//     GET  /metrics             docs/metrics.md
//     *    /v1/projects/...     docs/rest.md; also as /v1beta1
//     DELETE /emulator/v1/...   EmulatorReset
//     *    /google.firestore.v1.Firestore/METHOD/channel   WebChannelHandler

internal import Basics
internal import DocumentModel
internal import FirestoreJSON
package import FirestoreService
package import HTTPProtocols

/// The HTTP side of one loop.
package final class HTTPRequestHandler: HTTPHandler {
    private let pages: ServerPages
    private let rest: RESTHandler
    private let webChannel: WebChannelHandler
    private let service: FirestoreService
    private let options: HTTPOptions

    /// - Parameter sessions: those of WebChannel, of all loops.
    package init(_ service: FirestoreService, pages: ServerPages, sessions: WebChannelTable, options: HTTPOptions) {
        self.service = service
        self.pages = pages
        self.options = options
        rest = RESTHandler(service)
        webChannel = WebChannelHandler(sessions, service)
    }

    package func handle(_ exchange: HTTPExchange, _ head: HTTPHead, body: RawSpan) {
        for field in fields(ofRefusal: head) { exchange.addField(field.name, field.value) }
        guard options.allowedHosts.admit(exchange, head), options.allowedOrigins.admit(exchange, head) else { return }
        var head = head
        do throws(RequestError) {
            try HeadersInQuery.add(to: &head)
        } catch {
            return exchange.fail(error)
        }
        if let authorization = head.value(of: "authorization") { exchange.supplyAuthorization(authorization) }
        let segments = URLText.segments(head.pathBytes)
        switch segments.first {
        case "v1", "v1beta1": rest.handle(exchange, head, Array(segments.dropFirst()), body: body)
        case WebChannelHandler.pathPrefix: webChannel.handle(exchange, head, Array(segments.dropFirst()), body: body)
        case "emulator": emulator(exchange, head, Array(segments.dropFirst()))
        default: page(exchange, head, segments)
        }
    }

    package func fields(ofRefusal head: HTTPHead) -> [HTTPField] { options.allowedOrigins.fields(for: head) }

    private func page(_ exchange: HTTPExchange, _ head: HTTPHead, _ segments: [String]) {
        guard segments.count == 1, let page = ServerPages.Page(rawValue: segments[0]) else {
            return exchange.fail(RequestError(.notFound, "There is no resource at this path."))
        }
        guard head.method == .get || head.method == .head else {
            exchange.addField("Allow", "GET, HEAD")
            return exchange.reply(.methodNotAllowed, "Only GET and HEAD are allowed.\n")
        }
        pages.answer(page, exchange)
    }

    /// `DELETE /emulator/v1/projects/P/databases/D/documents`
    private func emulator(_ exchange: HTTPExchange, _ head: HTTPHead, _ segments: [String]) {
        let names = segments.map { PercentEncoding.decoded($0) ?? "" }
        guard head.method == .delete, names.count == 6, names[0] == "v1", names[1] == "projects",
            names[3] == "databases",
            names[5] == "documents"
        else { return exchange.fail(RequestError(.notFound, "There is no resource at this path.")) }
        guard options.emulatorEndpoints else {
            return exchange.fail(
                RequestError(
                    .permissionDenied,
                    """
                    Deleting a database over HTTP is disabled. Start the server with --emulator-endpoints on to enable \
                    it.
                    """))
        }
        do throws(RequestError) {
            let database = try DatabaseName(project: names[2], database: names[4])
            try service.authorizeReset(of: database, by: Principal(authorization: head.value(of: "authorization")))
            EmulatorReset(service, database) { result in
                switch result {
                case .success: exchange.reply(.ok, contentType: HTTPError.contentType) { $0.append(utf8: "{}\n") }
                case .failure(let error): exchange.fail(error)
                }
            }.start(on: exchange.loop)
        } catch {
            exchange.fail(error)
        }
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

    package init() {}
}
