// The console of the server, for browsers (docs/console.md).
//
//     GET  /console  /console/FILE        the page and its modules: everyone
//     POST /console/session               a token of an hour for a credential
//     POST /console/rpc/SERVICE/METHOD    administrative methods, as JSON
//     GET  /console/data/NAME             what the views show
//     POST /console/data/rules            messages about rules, and what they decide
//     POST /console/data/pipeline         the message of a pipeline's text
//     POST /console/data/backups          starts or cancels a backup
//
// The files are the same for everyone and say nothing about the server. Everything else is for callers that may
// administer the server.

internal import Authorization
internal import Basics
internal import Calls
internal import DocumentJSON
internal import FirestoreJSON
internal import FirestoreMessages
internal import FirestoreService
internal import HTTPProtocols
internal import Identity

/// Serves `/console` on one loop. Confined to the loop.
final class ConsoleHandler {
    private let data: ConsoleData
    private let router: CallRouter
    private let authorization: Authorization?
    private let bodies: JSONBodies
    /// Bytes of what is posted to `/console/data`: rules with cases, or the text of a pipeline.
    private static let dataBytesMax = 2 << 20

    /// - Parameter authorization: nil permits everything.
    init(_ data: ConsoleData, _ router: CallRouter, _ bodies: JSONBodies, _ authorization: Authorization?) {
        self.data = data
        self.bodies = bodies
        self.router = router
        self.authorization = authorization
    }

    /// The policy of the page: its own scripts and styles, no other origin, no text that becomes a script.
    static let policy = """
        default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
        frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'
        """

    /// - Parameter segments: of the path after `/console`, still encoded.
    func handle(_ exchange: HTTPExchange, _ head: HTTPHead, _ segments: [String], body: RawSpan) {
        addFields(exchange)
        switch segments.first {
        case "session" where segments.count == 1: session(exchange, head)
        case "rpc" where segments.count == 3: call(exchange, head, "\(segments[1])/\(segments[2])", body)
        case "data" where segments.count == 2: show(exchange, head, segments[1], body)
        default: file(exchange, head, segments.joined(separator: "/"))
        }
    }

    private func addFields(_ exchange: HTTPExchange) {
        exchange.addField("Content-Security-Policy", Self.policy)
        exchange.addField("X-Content-Type-Options", "nosniff")
        exchange.addField("Referrer-Policy", "no-referrer")
        exchange.addField("Cross-Origin-Opener-Policy", "same-origin")
        exchange.addField("Cross-Origin-Resource-Policy", "same-origin")
    }

    // MARK: Files

    private func file(_ exchange: HTTPExchange, _ head: HTTPHead, _ path: String) {
        guard let file = ConsoleFile.all[path] else {
            return exchange.fail(RequestError(.notFound, "There is no resource at this path."))
        }
        guard ServerPages.permits(head.method, exchange) else { return }
        // Asked for again each time: another version of the server has other files.
        exchange.addField("Cache-Control", "no-cache")
        exchange.addField("ETag", file.tag)
        if let condition = head.value(of: "if-none-match"), file.matches(condition) {
            return exchange.reply(HTTPStatus(304), contentType: file.contentType) { _ in }
        }
        exchange.reply(.ok, contentType: file.contentType) { $0.append(file.bytes) }
    }

    // MARK: Data

    private func permitsPost(_ exchange: HTTPExchange, _ head: HTTPHead) -> Bool {
        if head.method == .post { return true }
        exchange.addField("Allow", "POST")
        exchange.reply(.methodNotAllowed, "Only POST is allowed.\n")
        return false
    }

    private func session(_ exchange: HTTPExchange, _ head: HTTPHead) {
        guard permitsPost(exchange, head) else { return }
        do throws(RequestError) {
            var members: [String: JSONValue] = ["mode": .string("open")]
            if let authorization {
                let grant = try authorization.consoleGrant(exchange.origin(head))
                members["mode"] = .string(grant.mode.rawValue)
                if let token = grant.token {
                    members["token"] = .string(token.token)
                    members["expiresIn"] = .integer(token.expiresIn)
                }
            }
            reply(exchange, .object(members))
        } catch {
            fail(exchange, error)
        }
    }

    private func show(_ exchange: HTTPExchange, _ head: HTTPHead, _ name: String, _ body: RawSpan) {
        let isPosted = name == "rules" || name == "pipeline" || name == "backups" && head.method == .post
        guard isPosted ? permitsPost(exchange, head) : ServerPages.permits(head.method, exchange) else { return }
        do throws(RequestError) {
            try authorization?.admit(exchange.origin(head), for: .administration)
            if isPosted {
                guard body.byteCount <= Self.dataBytesMax else {
                    throw .invalidArgument("The body has more than \(Self.dataBytesMax) bytes.")
                }
                return reply(exchange, try answer(name, [UInt8](copying: body)))
            }
            let parameters = URLText.parameters(head.queryBytes) ?? []
            try data.show(name, parameters, on: exchange.loop) { [self] in reply(exchange, $0) }
        } catch {
            fail(exchange, error)
        }
    }

    /// The answer to a body that was posted.
    private func answer(_ name: String, _ body: [UInt8]) throws(RequestError) -> JSONValue {
        switch name {
        case "rules": try ConsoleRules.answer(body)
        case "pipeline": try ConsolePipelines.answer(body)
        default: try data.backups.perform(body)
        }
    }

    private func reply(_ exchange: HTTPExchange, _ value: JSONValue) {
        exchange.addField("Cache-Control", "no-store")
        exchange.reply(.ok, contentType: HTTPError.contentType) { $0.append(utf8: value.json + "\n") }
    }

    private func fail(_ exchange: HTTPExchange, _ error: RequestError) {
        exchange.addField("Cache-Control", "no-store")
        exchange.fail(error)
    }

    // MARK: Administrative methods

    private func call(_ exchange: HTTPExchange, _ head: HTTPHead, _ path: String, _ body: RawSpan) {
        guard permitsPost(exchange, head) else { return }
        exchange.addField("Cache-Control", "no-store")
        guard let served = ConsoleMethods.byPath[path] else {
            return exchange.fail(RequestError(.notFound, "The console has no method \(path)."))
        }
        let form: any ReplyForm
        if let path = served.explainPath {
            form = ExplainReply(path: path)
        } else {
            form = RESTReply(served.output, isStreaming: false, isPretty: false)
        }
        let call = exchange.beginCall(served.method.rpc, form)
        do throws(RequestError) {
            if body.byteCount > JSONBodies.bytesAtOnce { try router.admitUnread(call, served.method) }
        } catch {
            return router.refuse(call, error)
        }
        let message = ByteBuffer(capacity: body.byteCount + 64)
        bodies.read(body, served.input, onto: message, on: exchange.loop, while: { call.isOpen }) {
            [router] (message: consuming ByteBuffer, error: RequestError?) in
            if let error { return router.refuse(call, error) }
            router.begin(call, payload: message.bytes)
        }
    }
}
