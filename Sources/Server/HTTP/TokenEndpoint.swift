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
    /// Members of a form; of a name that occurs twice the first counts.
    private static let membersMax = 16

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
        let form = FormEncoding.pairs(body, max: membersMax) ?? []
        func member(_ name: String) -> String? { form.first { $0.name == name }?.value }
        guard let grant = member("grant_type"), let assertion = member("assertion") else {
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
}
