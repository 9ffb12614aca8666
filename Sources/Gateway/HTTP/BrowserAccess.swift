// Who may call from a browser (the Fetch standard's CORS).
//
// A page of any site can send requests to a server on its visitor's machine. What protects the server is to refuse requests that
// carry the Origin of a foreign page: all of them, since some are sent without asking first. Programs other than browsers send no
// Origin and are not concerned.

internal import Basics
internal import DocumentModel
internal import Transport

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
    /// Deals with what browsers add to a request.
    ///
    /// - Returns: whether the request is to be served; if not, it has been answered.
    func admit(_ exchange: HTTPExchange, _ head: HTTP1Head) -> Bool {
        guard let origin = head.value(of: "origin") else { return true }
        guard contains(origin) else {
            exchange.fail(
                RequestError(.permissionDenied, "Pages of \(origin) may not call this server; --allow-origin says which may."))
            return false
        }
        exchange.addHeaders("Access-Control-Allow-Origin: \(origin)\r\nVary: Origin\r\n")
        guard head.method == .options, head.value(of: "access-control-request-method") != nil else { return true }
        var lines = "Access-Control-Allow-Methods: GET, POST, PATCH, PUT, DELETE\r\nAccess-Control-Max-Age: 3600\r\n"
        if let names = head.value(of: "access-control-request-headers") {
            lines += "Access-Control-Allow-Headers: \(names)\r\n"
        }
        if head.value(of: "access-control-request-private-network") == "true" {
            lines += "Access-Control-Allow-Private-Network: true\r\n"
        }
        exchange.addHeaders(lines)
        exchange.reply(.noContent, "")
        return false
    }
}
