// Headers that a page sends in its URL (`$httpHeaders`): a request with none but the plainest headers is sent by
// browsers at once, any other only after a preflight.

internal import Basics
internal import DocumentModel
internal import HTTPProtocols

enum HeadersInQuery {
    private static let parameter = "$httpHeaders"
    /// Lines that one request may bring.
    private static let linesMax = 100

    /// Adds what the query brings to the head of the request. A header that the request itself has counts before it.
    ///
    /// - Throws: INVALID_ARGUMENT for what is not a header, or one that a page could not send (the Fetch standard's
    ///   forbidden request-headers): these say what the browser and the network know, and protect the server.
    static func add(to head: inout HTTPHead) throws(RequestError) {
        guard String(repairingUTF8: head.queryBytes).contains("httpHeaders") else { return }
        for parameter in URLText.parameters(head.queryBytes) ?? [] where parameter.name == Self.parameter {
            try add(parameter.value, named: Self.parameter, to: &head)
        }
    }

    /// Adds lines of headers to the head of the request.
    ///
    /// - Parameters:
    ///   - lines: `Name:value`, each with CR LF at its end, which the last need not have.
    ///   - parameter: where the lines are, for errors.
    static func add(_ lines: String, named parameter: String, to head: inout HTTPHead) throws(RequestError) {
        // CR LF is one character of Swift's.
        var lines = lines.split(separator: "\r\n", omittingEmptySubsequences: false)
        if lines.last?.isEmpty == true { lines.removeLast() }
        guard lines.count <= linesMax else { throw .invalidArgument("\(parameter) has more than \(linesMax) lines.") }
        for line in lines {
            let halves = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let name = halves[0].lowercased()
            guard halves.count == 2, isName(name), halves[1].utf8.allSatisfy(isFieldText) else {
                throw .invalidArgument("\(parameter) must consist of lines of the form \"Name:value\".")
            }
            guard mayBeSent(name) else {
                throw .invalidArgument("\(parameter) must not contain the header \(name), which a web page cannot set.")
            }
            head.add(name, trimmed(halves[1]))
        }
    }

    private static func trimmed(_ value: Substring) -> String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        let start = value.drop(while: isSpace)
        return String(start.prefix(start.count - start.reversed().prefix(while: isSpace).count))
    }

    private static func isName(_ name: String) -> Bool { !name.isEmpty && name.utf8.allSatisfy(ASCII.isToken) }

    private static func isFieldText(_ byte: UInt8) -> Bool { ASCII.isFieldText(byte) }

    /// Whether a page's script may set a header of this name (Fetch standard, section 2.2.2).
    private static func mayBeSent(_ name: String) -> Bool {
        !forbidden.contains(name) && !name.hasPrefix("proxy-") && !name.hasPrefix("sec-")
    }

    private static let forbidden: Set<String> = [
        "accept-charset", "accept-encoding", "access-control-request-headers", "access-control-request-method",
        "access-control-request-private-network", "connection", "content-length", "cookie", "cookie2", "date", "dnt",
        "expect", "host",
        "keep-alive", "origin", "referer", "set-cookie", "te", "trailer", "transfer-encoding", "upgrade", "via",
        "x-http-method",
        "x-http-method-override", "x-method-override",
    ]
}
