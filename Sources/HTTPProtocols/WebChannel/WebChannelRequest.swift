package import Basics

/// What one HTTP request of WebChannel asks for, by the parameters of its URL.
package struct WebChannelRequest: Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
        /// Opens a session: a POST without `SID`.
        case open
        /// Brings messages: a POST with `SID`.
        case forward
        /// Opens a back channel: a GET with `RID=rpc`.
        ///
        /// - Parameter holdMilliseconds: how long a long poll is held, as far as the server allows; nil for a
        ///   streaming response.
        case back(holdMilliseconds: UInt64?)
        /// Ends the session.
        case terminate
    }

    package let kind: Kind
    /// The session; empty for a request that opens one.
    package let session: String
    /// The last array that the page has.
    package let acknowledged: UInt64?
    /// The name of the database; empty if the request does not have it.
    package let database: String

    /// Parameters that one URL may have.
    private static let parametersMax = 64
    /// Characters of a session identifier that can be one.
    private static let sessionCharactersMax = 64

    /// - Parameter query: the query of the URL.
    /// - Throws: INVALID_ARGUMENT for anything else than such a request.
    package init(isPost: Bool, query: RawSpan) throws(RequestError) {
        guard let pairs = FormEncoding.pairs(query, max: Self.parametersMax) else {
            throw .invalidArgument("The query is not percent-encoded UTF-8 or has too many parameters.")
        }
        func value(_ name: String) -> String? { pairs.first { $0.name == name }?.value }
        guard value("VER") == "8" else { throw .invalidArgument("The only supported WebChannel version is VER=8.") }
        database = value("database") ?? ""
        session = value("SID") ?? ""
        acknowledged = try value("AID").map { text throws(RequestError) in try Self.number(text, "AID") }
        guard session.utf8.count <= Self.sessionCharactersMax else { throw .unknownSession }
        if session.isEmpty {
            guard isPost, value("SID") == nil else { throw .invalidArgument("The parameter SID is missing.") }
            kind = .open
        } else if value("TYPE") == "terminate" {
            kind = .terminate
        } else if isPost {
            kind = .forward
        } else {
            guard value("RID") == "rpc" else { throw .invalidArgument("A back channel must have RID=rpc.") }
            let isLongPoll = value("CI") == "1"
            let hold = try value("TO").map { text throws(RequestError) in try Self.number(text, "TO") }
            kind = .back(holdMilliseconds: isLongPoll ? hold ?? .max : nil)
        }
    }

    /// A decimal number of at most 15 digits.
    static func number(_ text: String, _ name: String) throws(RequestError) -> UInt64 {
        guard 1...15 ~= text.utf8.count, text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
            let number = UInt64(text)
        else { throw .invalidArgument("The parameter \(name) must be a number.") }
        return number
    }
}

extension RequestError {
    /// The page finds the words in a response with status 400 and opens a new session.
    package static let unknownSession = RequestError.invalidArgument("Unknown SID")
}

/// The body of a POST: headers, and numbered messages.
package struct WebChannelPost: Equatable, Sendable {
    /// Messages that one request may have.
    package static let messagesMax = 1_000
    /// Bytes of the header lines. The session keeps a part of them.
    static let headersBytesMax = 16 << 10

    /// Header lines for the whole session, `Name:value` with CR LF after each; empty after the first request.
    package let headers: String
    /// The number of the first message.
    package let offset: UInt64
    /// The JSON text of each message.
    package let messages: [[UInt8]]

    /// - Throws: INVALID_ARGUMENT for a body that is not of this form or has too many messages.
    package init(_ body: RawSpan) throws(RequestError) {
        guard let pairs = FormEncoding.pairs(body, max: Self.messagesMax + 8) else {
            throw .invalidArgument("The body is not a percent-encoded form or has too many fields.")
        }
        var headers = ""
        var count: UInt64 = 0
        var offset: UInt64 = 0
        var found: [UInt64: String] = [:]
        for pair in pairs {
            switch pair.name {
            case "headers": headers = pair.value
            case "count": count = try WebChannelRequest.number(pair.value, "count")
            case "ofs": offset = try WebChannelRequest.number(pair.value, "ofs")
            default: if let index = Self.index(pair.name) { found[index] = pair.value }
            }
        }
        guard headers.utf8.count <= Self.headersBytesMax else {
            throw .invalidArgument("The headers must not have more than \(Self.headersBytesMax) bytes.")
        }
        guard count <= Self.messagesMax else {
            throw .invalidArgument("A request must not have more than \(Self.messagesMax) messages.")
        }
        var messages: [[UInt8]] = []
        for index in 0..<count {
            guard let text = found[index] else { throw .invalidArgument("The field req\(index)___data__ is missing.") }
            messages.append(Array(text.utf8))
        }
        self.headers = headers
        self.offset = offset
        self.messages = messages
    }

    /// The number in `req0___data__`.
    private static func index(_ name: String) -> UInt64? {
        guard name.hasPrefix("req"), name.hasSuffix("___data__") else { return nil }
        let digits = name.dropFirst("req".count).dropLast("___data__".count)
        return 1...4 ~= digits.utf8.count ? UInt64(digits) : nil
    }
}
