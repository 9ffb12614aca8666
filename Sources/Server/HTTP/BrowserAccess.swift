// Who may call from a browser (the Fetch standard's CORS).
//
// A page of any site can send requests to a server on its visitor's machine. What protects the server is to refuse
// requests that carry the Origin of a foreign page: all of them, since some are sent without asking first. Programs
// other than browsers send no Origin and are not concerned.

internal import Basics
internal import DocumentModel
internal import FirestoreService
internal import HTTPProtocols

/// The origins whose pages may call.
package enum AllowedOrigins: Equatable, Sendable {
    /// Pages served from this machine: localhost and loopback addresses, any port.
    case local
    case any
    case none
    /// These, each as `https://app.example.org`.
    case listed([String])

    /// Reads `local`, `any`, `none`, or origins with commas between; nil for anything else.
    package init?(_ text: String) {
        switch text {
        case "local": self = .local
        case "any": self = .any
        case "none": self = .none
        default:
            let origins = text.split(separator: ",").map(String.init)
            let areOrigins = origins.allSatisfy { $0.hasPrefix("http://") || $0.hasPrefix("https://") }
            guard !origins.isEmpty, areOrigins, origins.allSatisfy({ !$0.hasSuffix("/") }) else { return nil }
            self = .listed(origins)
        }
    }

    package func contains(_ origin: String) -> Bool {
        switch self {
        case .any: true
        case .none: false
        case .listed(let origins): origins.contains(origin)
        case .local: Self.isLocal(origin)
        }
    }

    /// Whether the host of `scheme://host[:port]` names this machine.
    private static func isLocal(_ origin: String) -> Bool {
        guard let scheme = ["http://", "https://"].first(where: origin.hasPrefix) else { return false }
        return Authority(origin.dropFirst(scheme.count))?.isLocal ?? false
    }
}

extension AllowedOrigins {
    /// The fields of every reply to a request of a page, refusals included, so that its script can read them.
    ///
    /// A page that may not call sees a refusal and its reason, and its credentials do not count.
    func fields(for head: HTTPHead) -> [HTTPField] {
        guard let origin = head.value(of: "origin") else { return [] }
        let named = [HTTPField("Access-Control-Allow-Origin", origin), HTTPField("Vary", "Origin")]
        return contains(origin) ? named + [HTTPField("Access-Control-Allow-Credentials", "true")] : named
    }

    /// Refuses foreign pages and answers preflights.
    ///
    /// - Returns: whether the request is to be served; if not, it has been answered.
    func admit(_ exchange: HTTPExchange, _ head: HTTPHead) -> Bool {
        guard let origin = head.value(of: "origin") else { return true }
        guard contains(origin) else {
            exchange.fail(
                RequestError(
                    .permissionDenied,
                    "Web pages of \(origin) are not allowed to call this server. Allow them with --allow-origin."))
            return false
        }
        guard head.method == .options, head.value(of: "access-control-request-method") != nil else { return true }
        exchange.addField("Access-Control-Allow-Methods", "GET, POST, PATCH, PUT, DELETE")
        exchange.addField("Access-Control-Max-Age", "3600")
        if let names = head.value(of: "access-control-request-headers") {
            exchange.addField("Access-Control-Allow-Headers", names)
        }
        if head.value(of: "access-control-request-private-network") == "true" {
            exchange.addField("Access-Control-Allow-Private-Network", "true")
        }
        exchange.reply(.noContent, "")
        return false
    }
}
