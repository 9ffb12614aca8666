// What the official emulator serves beside the API, for test suites:
//
//     DELETE /emulator/v1/projects/P/databases/D/documents     EmulatorReset
//     PUT    /emulator/v1/projects/P:securityRules             rules for the project
//     GET    /emulator/v1/projects/P:securityRules
//     GET    /emulator/v1/projects/P:ruleCoverage[.html]       what of the rules was evaluated, how often
//     POST   /emulator/v1/projects/P:export, :import           EmulatorFiles
//
// Rules that come this way switch an open server to the emulator's mode, and are forgotten when the server ends.

internal import Authorization
internal import Basics
internal import Calls
internal import DocumentModel
internal import FirestoreService
internal import HTTPProtocols
internal import Identity
internal import SecurityRules

/// Serves `/emulator/...` on one loop.
final class EmulatorHandler {
    private let calls: CallRouter
    private let isEnabled: Bool
    let authorization: Authorization?
    /// Exports and imports; nil if this server has none.
    let files: EmulatorFiles?
    private let address: @Sendable () -> String

    init(
        _ calls: CallRouter, _ options: HTTPOptions, _ authorization: Authorization?,
        address: @escaping @Sendable () -> String
    ) {
        self.address = address
        self.calls = calls
        isEnabled = options.emulatorEndpoints
        files = options.emulatorFiles
        self.authorization = authorization
    }

    /// - Parameter segments: of the path after `/emulator`, still encoded.
    func handle(_ exchange: HTTPExchange, _ head: HTTPHead, _ segments: [String], body: RawSpan) {
        let names = segments.map { PercentEncoding.decoded($0) ?? "" }
        do throws(RequestError) {
            guard names.count >= 3, names[0] == "v1", names[1] == "projects" else { throw Self.noResource }
            if names.count == 6, names[3] == "databases", names[5] == "documents", head.method == .delete {
                try admit(exchange, head)
                return try reset(exchange, try DatabaseName(project: names[2], database: names[4]))
            }
            guard names.count == 3, let colon = names[2].lastIndex(of: ":") else { throw Self.noResource }
            let (project, verb) = (String(names[2][..<colon]), names[2][names[2].index(after: colon)...])
            switch (head.method, verb) {
            case (.put, "securityRules"):
                try admit(exchange, head)
                try setRules(of: project, body)
                reply(exchange, "{}")
            case (.get, "securityRules"):
                try admit(exchange, head)
                reply(exchange, "{\"rules\":\(EmulatorRules.filesJSON(try rules(of: project).ruleset))}")
            case (.get, "ruleCoverage"), (.get, "ruleCoverage.html"):
                try admit(exchange, head)
                try coverage(exchange, of: project, isPage: verb.hasSuffix(".html"))
            case (.post, "export"), (.post, "import"):
                try admit(exchange, head)
                try moveFiles(exchange, head, isExport: verb == "export", body)
            default: throw Self.noResource
            }
        } catch {
            exchange.fail(error)
        }
    }

    /// Serves the routes of ``EmulatorHub``.
    /// - Parameter segments: of the path, still encoded.
    func handleHub(_ exchange: HTTPExchange, _ head: HTTPHead, _ segments: [String]) {
        do throws(RequestError) {
            guard isEnabled else { throw Self.noResource }
            try admit(exchange, head)
            reply(exchange, try EmulatorHub(address: address()).reply(head.method, segments.joined(separator: "/")))
        } catch {
            exchange.fail(error)
        }
    }

    private static let noResource = RequestError(.notFound, "There is no resource at this path.")

    private func admit(_ exchange: HTTPExchange, _ head: HTTPHead) throws(RequestError) {
        if !isEnabled {
            throw RequestError(
                .permissionDenied,
                """
                The emulator's routes are disabled. Start the server with --emulator-endpoints on to enable them.
                """)
        }
        try authorization?.admit(exchange.origin(head), for: .administration)
    }

    func reply(_ exchange: HTTPExchange, _ json: String) {
        exchange.reply(.ok, contentType: HTTPError.contentType) { $0.append(utf8: json + "\n") }
    }

    /// The service of a database: a server with these routes and several stores has one place for each.
    func service(of database: DatabaseName) throws(RequestError) -> FirestoreService {
        guard let store = calls.stores.known(database) else { throw .noStore(of: database) }
        try store.checkServes()
        return store.firestore
    }

    private func reset(_ exchange: HTTPExchange, _ database: DatabaseName) throws(RequestError) {
        EmulatorReset(try service(of: database), database) { [self] result in
            switch result {
            case .success: reply(exchange, "{}")
            case .failure(let error): exchange.fail(error)
            }
        }.start(on: exchange.loop)
    }

    // MARK: Rules

    private func controlled() throws(RequestError) -> Authorization {
        guard let authorization else {
            throw RequestError(.failedPrecondition, "This server has no access control.")
        }
        return authorization
    }

    private func setRules(of project: String, _ body: RawSpan) throws(RequestError) {
        let authorization = try controlled()
        let text = try EmulatorRules.text(of: body)
        let ruleset: Ruleset
        do throws(InvalidRules) {
            ruleset = try Ruleset(text)
        } catch {
            let places = error.diagnostics.filter { $0.severity == .error }.map { diagnostic in
                let start = SourceText(text).position(of: diagnostic.range.start)
                return "L\(start.line):\(start.column) \(diagnostic.message)"
            }
            throw .invalidArgument("Error compiling rules:\n\(places.joined(separator: "\n"))")
        }
        try authorization.setEmulatorRules(ruleset, of: project)
    }

    private func rules(of project: String) throws(RequestError) -> JudgingRules {
        guard let rules = try controlled().state.rules(of: project) else {
            throw RequestError(.notFound, "The project has no security rules.")
        }
        return rules
    }

    private func coverage(_ exchange: HTTPExchange, of project: String, isPage: Bool) throws(RequestError) {
        guard let report = try rules(of: project).coverageReport(isPage: isPage, name: EmulatorRules.fileName) else {
            throw RequestError(.notFound, "The project has no rules that came over this route.")
        }
        if !isPage { return reply(exchange, report) }
        exchange.reply(.ok, contentType: "text/html; charset=utf-8") { $0.append(utf8: report) }
    }
}
