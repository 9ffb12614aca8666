// The pages about the server itself: Ok, liveness, readiness, metrics; and the script for web pages.

internal import DocumentModel
internal import DocumentStore
internal import HTTPProtocols

/// Answers the pages; shared by all loops.
package final class ServerPages: Sendable {
    /// The pages by their paths.
    enum Page: String {
        case root = ""
        case livez, readyz, metrics
        case authScript = "hearth-auth.js"

        /// - Parameter path: of a request's target; nil if no page has it.
        init?(path: RawSpan) {
            let segments = URLText.segments(path)
            guard segments.count == 1 else { return nil }
            self.init(rawValue: segments[0])
        }
    }

    private let readiness: Readiness
    private let metrics: MetricsPage

    init(readiness: Readiness, metrics: MetricsPage) {
        self.readiness = readiness
        self.metrics = metrics
    }

    /// Refuses other methods than GET and HEAD.
    ///
    /// - Returns: whether the request is to be served; if not, it has its reply.
    static func permits(_ method: HTTPMethod, _ exchange: HTTPExchange) -> Bool {
        if method == .get || method == .head { return true }
        exchange.addField("Allow", "GET, HEAD")
        exchange.reply(.methodNotAllowed, "Only GET and HEAD are allowed.\n")
        return false
    }

    /// - Parameter withReasons: whether the reply may say why the server does not take work.
    func answer(_ page: Page, _ exchange: HTTPExchange, withReasons: Bool) {
        switch page {
        case .root: exchange.reply(.ok, "Ok\n")
        case .livez: exchange.reply(.ok, "ok\n")
        case .readyz:
            if let reason = readiness.notReadyReason {
                exchange.reply(.unavailable, withReasons ? "not ready: \(reason)\n" : "not ready\n")
            } else {
                exchange.reply(.ok, "ready\n")
            }
        case .metrics: metrics.answer(exchange)
        case .authScript: AuthScript.answer(exchange)
        }
    }
}
