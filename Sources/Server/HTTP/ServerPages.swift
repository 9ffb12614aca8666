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
    }

    private let readiness: Readiness
    private let metrics: MetricsPage

    init(readiness: Readiness, metrics: MetricsPage) {
        self.readiness = readiness
        self.metrics = metrics
    }

    func answer(_ page: Page, _ exchange: HTTPExchange) {
        switch page {
        case .root: exchange.reply(.ok, "Ok\n")
        case .livez: exchange.reply(.ok, "ok\n")
        case .readyz:
            if let reason = readiness.notReadyReason {
                exchange.reply(.unavailable, "not ready: \(reason)\n")
            } else {
                exchange.reply(.ok, "ready\n")
            }
        case .metrics: metrics.answer(exchange)
        case .authScript: AuthScript.answer(exchange)
        }
    }
}
