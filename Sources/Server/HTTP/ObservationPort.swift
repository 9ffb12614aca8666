// A port for observation alone: its pages and health checks need no credential. Everything else is on the main port.
//
//     GET  /                    Ok
//     GET  /livez  /readyz      whether the process runs; whether it takes work, and why not
//     GET  /metrics             docs/metrics.md
//     gRPC grpc.health.v1.Health

internal import Basics
internal import Calls
internal import Connections
internal import FirestoreMessages
internal import HTTPProtocols

/// Where a server listens for observation.
package struct ObservationOptions: Sendable {
    package var host: String
    /// 0 lets the system pick one.
    package var port: UInt16
    /// The names that clients may know this port by.
    package var allowedHosts: AllowedHosts
    /// Whose pages may read it from a browser.
    package var allowedOrigins: AllowedOrigins

    package init(
        host: String, port: UInt16, allowedHosts: AllowedHosts = .any, allowedOrigins: AllowedOrigins = .local
    ) {
        self.host = host
        self.port = port
        self.allowedHosts = allowedHosts
        self.allowedOrigins = allowedOrigins
    }

    /// Connections of the port: a collector, a load balancer and an operator have a few.
    package static let connectionsMax = 64
    /// Connections beyond them that are open for their refusal.
    package static let refusalsMax = 8

    /// How the port listens: in plain text, with few connections, otherwise like the main port.
    ///
    /// - Parameter main: the configuration of the main port.
    func transport(besides main: ServerConfiguration) -> ServerConfiguration {
        var transport = main
        transport.host = host
        transport.port = port
        transport.tls = nil
        transport.connectionsMax = Self.connectionsMax
        transport.refusalsMax = Self.refusalsMax
        return transport
    }
}

/// Answers the pages of the port; one for each loop. Confined to its loop's thread.
final class ObservationHandler: HTTPHandler {
    private let pages: ServerPages
    private let options: ObservationOptions

    init(pages: ServerPages, options: ObservationOptions) {
        self.pages = pages
        self.options = options
    }

    func handle(_ exchange: HTTPExchange, _ head: HTTPHead, body: RawSpan) {
        for field in fields(ofRefusal: head, isSecure: false) { exchange.addField(field.name, field.value) }
        guard options.allowedHosts.admit(exchange, head), options.allowedOrigins.admit(exchange, head) else { return }
        guard let page = ServerPages.Page(path: head.pathBytes), page != .authScript else {
            return exchange.fail(RequestError(.notFound, "This port has /livez, /readyz and /metrics alone."))
        }
        guard ServerPages.permits(head.method, exchange) else { return }
        pages.answer(page, exchange, withReasons: true)
    }

    func fields(ofRefusal head: HTTPHead, isSecure: Bool) -> [HTTPField] { options.allowedOrigins.fields(for: head) }
}

/// Passes the port's calls to the router of the loop. Confined to its loop's thread.
final class ObservationCalls: ServiceHandler {
    private let router: CallRouter

    init(_ router: CallRouter) { self.router = router }

    func begin(_ call: Call, payload: RawSpan) { router.begin(call, payload: payload) }

    func abandoned(_ reason: CancellationReason) { router.abandoned(reason) }

    // The router hears of it from the main port.
    func loopWillWait() {}
}
