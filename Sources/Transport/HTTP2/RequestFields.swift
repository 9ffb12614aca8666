// The header fields of a gRPC request: which of them matter, and what they may say.

import DocumentModel

/// What a request's header fields say, gathered one by one. Fields that mean nothing to us cost their length and no more:
/// `google-cloud-resource-prefix`, `x-goog-request-params` and all others are let pass.
struct RequestFields {
    private(set) var isPost = false
    private(set) var contentType = ContentType.missing
    private(set) var target = Target.missing
    private(set) var timeout = Timeout.none
    private(set) var encoding: MessageEncoding? = .identity
    /// The value of `authorization`, if it is to be kept; empty without one.
    private(set) var authorization: [UInt8] = []
    /// Their size as RFC 9113 section 6.5.2 counts it.
    private(set) var byteCount = 0

    enum ContentType {
        case missing, grpc, other
    }

    enum Target: Equatable {
        case missing
        case method(Method)
        /// The path names no method of ours; cut if it is long.
        case unknown(String)
    }

    enum Timeout: Equatable {
        case none
        case milliseconds(UInt32)
        case malformed
    }

    /// Longest part of an unknown path that is repeated to the client.
    private static let pathBytesShown = 200
    /// What RFC 9113 adds to a field's name and value.
    private static let fieldOverheadBytes = 32

    /// Takes one field; names are in small letters already.
    mutating func take(_ name: RawSpan, _ value: RawSpan, bytesMax: Int, keepsAuthorization: Bool = false) {
        byteCount += name.byteCount + value.byteCount + Self.fieldOverheadBytes
        guard byteCount <= bytesMax else { return }
        switch name.byteCount {
        case 5 where name.spells(":path"): target = Self.target(value)
        case 7 where name.spells(":method"): isPost = value.spells("POST")
        case 12 where name.spells("content-type"): contentType = Self.contentType(value)
        case 12 where name.spells("grpc-timeout"): timeout = Self.timeout(value)
        case 13 where name.spells("grpc-encoding"): encoding = MessageEncoding(value)
        case 13 where keepsAuthorization && name.spells("authorization"): authorization = [UInt8](copying: value)
        default: break
        }
    }

    private static func target(_ path: RawSpan) -> Target {
        if let method = MethodPaths.shared.method(at: path) { return .method(method) }
        return .unknown(String(repairingUTF8: path.extracting(first: min(path.byteCount, pathBytesShown))))
    }

    /// `application/grpc`, alone or followed by `+proto` or a parameter. Any other message format is not ours.
    private static func contentType(_ value: RawSpan) -> ContentType {
        guard var rest = value.afterPrefix("application/grpc") else { return .other }
        if let afterFormat = rest.afterPrefix("+proto") { rest = afterFormat }
        return rest.byteCount == 0 || rest.afterPrefix(";") != nil ? .grpc : .other
    }

    /// One to eight digits and a unit; parts of a millisecond count as a whole one.
    static func timeout(_ value: RawSpan) -> Timeout {
        let digits = value.byteCount - 1
        guard 1...8 ~= digits else { return .malformed }
        var number: UInt64 = 0
        for index in 0..<digits {
            let byte: UInt8 = value.loadInteger(at: index)
            guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte else { return .malformed }
            number = number * 10 + UInt64(byte - UInt8(ascii: "0"))
        }
        let milliseconds: UInt64
        switch value.loadInteger(at: digits) as UInt8 {
        case UInt8(ascii: "H"): milliseconds = number * 3_600_000
        case UInt8(ascii: "M"): milliseconds = number * 60_000
        case UInt8(ascii: "S"): milliseconds = number * 1_000
        case UInt8(ascii: "m"): milliseconds = number
        case UInt8(ascii: "u"): milliseconds = (number + 999) / 1_000
        case UInt8(ascii: "n"): milliseconds = (number + 999_999) / 1_000_000
        default: return .malformed
        }
        return .milliseconds(UInt32(clamping: milliseconds))
    }

    // MARK: The verdict

    enum Verdict: Equatable {
        case call(RequestHead, MessageEncoding)
        /// A gRPC request that cannot be served.
        case refuse(Refusal)
        /// No gRPC request at all: this HTTP status.
        case status(HTTPStatus)
    }

    enum HTTPStatus: String {
        case methodNotAllowed = "405"
        case unsupportedMediaType = "415"
    }

    /// What is to be done about the request.
    func verdict(bytesMax: Int) -> Verdict {
        guard byteCount <= bytesMax else { return .refuse(.metadataTooLarge(max: bytesMax)) }
        guard isPost else { return .status(.methodNotAllowed) }
        guard contentType == .grpc else { return .status(.unsupportedMediaType) }
        guard let encoding else { return .refuse(.unsupportedEncoding) }
        var head: RequestHead
        switch target {
        case .method(let method): head = RequestHead(method: method, isComplete: false)
        case .unknown(let path): return .refuse(.unknownPath(path))
        case .missing: return .refuse(.unknownPath(""))
        }
        switch timeout {
        case .none: break
        case .milliseconds(let milliseconds): head.deadlineMilliseconds = milliseconds
        case .malformed: return .refuse(.malformedTimeout)
        }
        return .call(head, encoding)
    }
}

/// The path of every method, to be found by its bytes.
struct MethodPaths: Sendable {
    static let shared = MethodPaths()

    private var bytes: [UInt8] = []
    private var entries: [Entry] = []

    private struct Entry {
        var range: Range<Int>
        var method: Method
    }

    private init() {
        for method in Method.allCases {
            for path in method.paths {
                let start = bytes.count
                bytes.append(contentsOf: path.utf8)
                entries.append(Entry(range: start..<bytes.count, method: method))
            }
        }
    }

    /// The method with this path, if there is one.
    func method(at path: RawSpan) -> Method? {
        let all = unsafe bytes.span.bytes
        for entry in entries where entry.range.count == path.byteCount {
            if all.extracting(entry.range).equalsBytes(path) { return entry.method }
        }
        return nil
    }
}

extension RawSpan {
    /// Whether these bytes are the ASCII text.
    func spells(_ text: StaticString) -> Bool {
        guard byteCount == text.utf8CodeUnitCount else { return false }
        // A static string's bytes live as long as the program.
        return equalsBytes(unsafe RawSpan(_unsafeStart: text.utf8Start, byteCount: byteCount))
    }

    /// What follows the ASCII text that these bytes begin with; nil when they do not.
    @_lifetime(copy self)
    func afterPrefix(_ text: StaticString) -> RawSpan? {
        let count = text.utf8CodeUnitCount
        guard byteCount >= count, extracting(first: count).spells(text) else { return nil }
        return extracting(droppingFirst: count)
    }
}
