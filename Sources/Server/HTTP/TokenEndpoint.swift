// Access tokens for service accounts (RFC 7523, RFC 6749 section 5): what `token_uri` of a key's file points to.

internal import Authorization
internal import Basics
internal import DocumentJSON
internal import HTTPProtocols
internal import Identity

/// Answers `POST /token`.
enum TokenEndpoint {
    /// Bytes of a request; assertions are shorter.
    private static let bodyBytesMax = 64 << 10

    static func answer(_ exchange: HTTPExchange, _ head: HTTPHead, body: RawSpan, _ authorization: Authorization?) {
        guard let authorization else { return exchange.reply(.notFound, "There is no resource at this path.\n") }
        guard head.method == .post else {
            exchange.addField("Allow", "POST")
            return exchange.reply(.methodNotAllowed, "Only POST is allowed.\n")
        }
        exchange.addField("Cache-Control", "no-store")
        guard body.byteCount <= bodyBytesMax else {
            return refuse(exchange, "invalid_request", "the body is too large")
        }
        let form = form(body)
        guard let grant = form["grant_type"], let assertion = form["assertion"] else {
            return refuse(exchange, "invalid_request", "grant_type or assertion is missing")
        }
        do throws(RequestError) {
            let token = try authorization.exchange(
                grantType: grant, assertion: Array(assertion.utf8), origin: exchange.origin(head))
            let json =
                "{\"access_token\":\(JSONText.quoted(token.token)),\"token_type\":\"Bearer\","
                + "\"expires_in\":\(token.expiresIn)}\n"
            exchange.reply(.ok, contentType: HTTPError.contentType) { $0.append(utf8: json) }
        } catch {
            refuse(
                exchange, error.code == .unauthenticated ? "invalid_grant" : "temporarily_unavailable", error.message)
        }
    }

    private static func refuse(_ exchange: HTTPExchange, _ error: String, _ text: String) {
        let json = "{\"error\":\"\(error)\",\"error_description\":\(JSONText.quoted(text))}\n"
        exchange.reply(.badRequest, contentType: HTTPError.contentType) { $0.append(utf8: json) }
    }

    /// The members of a form (`application/x-www-form-urlencoded`); of a name that occurs twice the first.
    private static func form(_ body: RawSpan) -> [String: String] {
        var members: [String: String] = [:]
        for part in String(repairingUTF8: body).split(separator: "&").prefix(16) {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let texts = pair.map { PercentEncoding.decoded($0.replacing("+", with: " ")) ?? "" }
            if texts.count == 2, members[texts[0]] == nil { members[texts[0]] = texts[1] }
        }
        return members
    }
}
