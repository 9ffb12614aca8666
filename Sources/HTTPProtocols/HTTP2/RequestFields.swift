// The header fields of a request: of a gRPC call those that matter are kept, of any other request all of them.

import Basics
import Calls

/// What a request's header fields say, gathered one by one.
///
/// The path, which comes before all ordinary fields, identifies a gRPC call. Of it, fields that mean nothing to us
/// cost their length and no more: `google-cloud-resource-prefix`, `x-goog-request-params` and all others are let pass.
struct RequestFields {
    private let rpcs: RPCTable
    private let servesHTTP: Bool
    /// The head of a request other than a gRPC call, as far as it has arrived.
    private(set) var head = HTTPHead()
    /// `:authority`, until the path shows whether it is needed.
    private var authority: [UInt8] = []
    private var isPlain = false
    private(set) var isPost = false
    private(set) var contentType = ContentType.missing
    private(set) var target = Target.missing
    private(set) var timeout = Timeout.none
    private(set) var encoding: MessageEncoding? = .identity
    /// The value of `authorization`, if it is to be kept; empty without one.
    private(set) var authorization: [UInt8] = []
    /// How often `authorization` has come. Of two, a proxy may have looked at either one.
    private var authorizationCount = 0
    /// For whom the request is forwarded, if that is to be kept.
    private(set) var forwarded = ForwardedFields()
    /// Whether a request had a header of a proxy; stays when the fields start again.
    private(set) var isProxied = false
    /// The first `user-agent` of the connection, cut; nil before it has come.
    private var agent: [UInt8]?
    private var isAgentTaken = false
    private static let agentBytesMax = 64
    /// Their size as RFC 9113 section 6.5.2 counts it.
    private(set) var byteCount = 0

    enum ContentType {
        case missing, grpc, other
    }

    enum Target: Equatable {
        case missing
        case rpc(RPC)
        /// The path names no procedure that is served; why, with a path that is cut if it is long.
        case unknown(Refusal)
    }

    enum Timeout: Equatable {
        case none
        case milliseconds(UInt32)
        case malformed
    }

    /// - Parameters:
    ///   - rpcs: the procedures that are served.
    ///   - servesHTTP: whether to keep all fields of a request that does not call one of them.
    init(rpcs: RPCTable, servesHTTP: Bool = false) {
        self.rpcs = rpcs
        self.servesHTTP = servesHTTP
    }

    /// Starts again.
    mutating func reset() {
        head = HTTPHead()
        authority.removeAll(keepingCapacity: true)
        isPlain = false
        isPost = false
        contentType = .missing
        target = .missing
        timeout = .none
        encoding = .identity
        authorization = []
        authorizationCount = 0
        forwarded = ForwardedFields()
        byteCount = 0
    }

    private static let host = Array("host".utf8)
    /// Longest part of an unknown path that is repeated to the client.
    private static let pathBytesShown = 200
    /// What RFC 9113 adds to a field's name and value.
    private static let fieldOverheadBytes = 32

    /// What a field counts for.
    static func byteCount(_ name: RawSpan, _ value: RawSpan) -> Int {
        name.byteCount + value.byteCount + fieldOverheadBytes
    }

    /// Takes one field; names are in small letters already.
    mutating func take(
        _ name: RawSpan, _ value: RawSpan, bytesMax: Int, keepsAuthorization: Bool = false, keepsForwarded: Bool = false
    ) {
        byteCount += Self.byteCount(name, value)
        guard byteCount <= bytesMax else { return }
        if keepsForwarded { forwarded.take(name, value) }
        switch name.byteCount {
        case 5 where name.spells(":path"): takePath(value)
        case 7 where name.spells(":method"):
            isPost = value.spells("POST")
            head.method = isPost ? .post : HTTPMethod(value)
        case 10 where name.spells(":authority"): takeAuthority(value)
        case 7 where name.spells(":scheme"): break
        case _ where isPlain: takeField(name, value, keepsAuthorization: keepsAuthorization)
        default: takeGRPCField(name, value, keepsAuthorization: keepsAuthorization)
        }
    }

    private mutating func takePath(_ value: RawSpan) {
        target = target(value)
        guard servesHTTP, case .unknown = target else { return }
        isPlain = true
        head.setTarget(value)
        let authority = authority
        if !authority.isEmpty { head.append(name: Self.host.byteSpan, value: authority.byteSpan) }
    }

    private mutating func takeAuthority(_ value: RawSpan) {
        guard servesHTTP else { return }
        if isPlain { return head.append(name: Self.host.byteSpan, value: value) }
        unsafe value.withUnsafeBytes { unsafe authority.append(contentsOf: $0) }
    }

    /// A field of a request that may be no gRPC call; its content type comes when it comes.
    private mutating func takeField(_ name: RawSpan, _ value: RawSpan, keepsAuthorization: Bool) {
        head.append(name: name, value: value)
        takeGRPCField(name, value, keepsAuthorization: keepsAuthorization)
    }

    private mutating func takeGRPCField(_ name: RawSpan, _ value: RawSpan, keepsAuthorization: Bool) {
        if HTTPHead.isOfProxy(name) { isProxied = true }
        switch name.byteCount {
        case 10 where agent == nil && name.spells("user-agent"):
            agent = [UInt8](copying: value.extracting(first: min(value.byteCount, Self.agentBytesMax)))
        case 12 where name.spells("content-type"): contentType = Self.contentType(value)
        case 12 where name.spells("grpc-timeout"): timeout = Self.timeout(value)
        case 13 where name.spells("grpc-encoding"): encoding = MessageEncoding(value)
        case 13 where name.spells("authorization"):
            authorizationCount += 1
            if keepsAuthorization { authorization = [UInt8](copying: value) }
        default: break
        }
    }

    /// What the client is, once for the connection.
    mutating func takeAgent() -> String? {
        guard !isAgentTaken, let agent else { return nil }
        isAgentTaken = true
        return String(decoding: agent, as: UTF8.self)
    }

    private func target(_ path: RawSpan) -> Target {
        if let rpc = rpcs.rpc(at: path) { return .rpc(rpc) }
        // A query may have a secret, and the refusal goes to the log.
        let end = path.firstOffset(of: UInt8(ascii: "?")) ?? path.byteCount
        let shown = path.extracting(first: min(end, Self.pathBytesShown))
        return .unknown(rpcs.refusal(ofPath: String(repairingUTF8: shown)))
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
            let byte = value[byteAt: index]
            guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte else { return .malformed }
            number = number * 10 + UInt64(byte - UInt8(ascii: "0"))
        }
        let milliseconds: UInt64
        switch value[byteAt: digits] {
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

    // MARK: Validation

    enum Validity: Equatable {
        case call(RequestHead, MessageEncoding)
        /// A gRPC request that cannot be served.
        case refuse(Refusal)
        /// No gRPC request at all: this HTTP status.
        case status(HTTPStatus)
        /// A request for the HTTP handler, or the reason for which it never gets there; its head is
        /// ``RequestFields/head``.
        case http(HTTPRefusal?)
    }

    /// What is to be done about the request.
    func validity(bytesMax: Int, httpFieldsMax: Int = 0) -> Validity {
        if isPlain, contentType != .grpc { return .http(refusal(bytesMax: bytesMax, fieldsMax: httpFieldsMax)) }
        if servesHTTP, target == .missing { return .http(byteCount > bytesMax ? .headTooLarge(bytesMax) : .target) }
        guard byteCount <= bytesMax else { return .refuse(.metadataTooLarge(max: bytesMax)) }
        guard isPost else { return .status(.methodNotAllowed) }
        guard contentType == .grpc else { return .status(.unsupportedMediaType) }
        if authorizationCount > 1 { return .refuse(.repeatedAuthorization) }
        guard let encoding else { return .refuse(.unsupportedEncoding) }
        var head: RequestHead
        switch target {
        case .rpc(let rpc): head = RequestHead(rpc: rpc, isComplete: false)
        case .unknown(let refusal): return .refuse(refusal)
        case .missing: return .refuse(.unknownPath(""))
        }
        switch timeout {
        case .none: break
        case .milliseconds(let milliseconds): head.deadlineMilliseconds = milliseconds
        case .malformed: return .refuse(.malformedTimeout)
        }
        return .call(head, encoding)
    }

    /// Why a request other than a gRPC call is not served; the same rules as over HTTP/1.1.
    private func refusal(bytesMax: Int, fieldsMax: Int) -> HTTPRefusal? {
        if byteCount > bytesMax { return .headTooLarge(bytesMax) }
        if head.fieldCount > fieldsMax { return .tooManyFields(fieldsMax) }
        if authorizationCount > 1 { return .repeatedAuthorization }
        let path = head.pathBytes
        guard !path.isEmpty, path.allBytes(Self.isTargetText), head.queryBytes.allBytes(Self.isTargetText) else {
            return .target
        }
        if path[byteAt: 0] == UInt8(ascii: "/") { return nil }
        return head.method == .options && path.spells("*") ? nil : .target
    }

    private static func isTargetText(_ byte: UInt8) -> Bool { 0x21...0x7E ~= byte && byte != UInt8(ascii: "#") }
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
