// The method, the target and the headers of one HTTP request, checked.

internal import Basics

/// The methods that something here answers.
package enum HTTPMethod: Sendable {
    case get, head, post, put, patch, delete, options
    /// Any other.
    case other

    init(_ name: RawSpan) {
        switch String(repairingUTF8: name) {
        case "GET": self = .get
        case "HEAD": self = .head
        case "POST": self = .post
        case "PUT": self = .put
        case "PATCH": self = .patch
        case "DELETE": self = .delete
        case "OPTIONS": self = .options
        default: self = .other
        }
    }
}

/// The head of a request: of one over HTTP/1.1, whose parser fills it in and hands it out when it is whole, or over
/// HTTP/2, whose `:authority` is in it as `host`.
package struct HTTPHead: Sendable {
    package internal(set) var method = HTTPMethod.other
    /// The minor version of HTTP/1: 0, or 1 also for what comes after it.
    package internal(set) var minorVersion = 1
    /// Whether the connection is to stay open after the reply.
    package internal(set) var keepsAlive = true
    /// Whether the client waits for `100 Continue` before it sends the body.
    package internal(set) var expectsContinue = false
    package internal(set) var body = Body.none
    /// Whether the request has a header of a proxy: `Forwarded`, `X-Forwarded-For` or `Via`.
    package private(set) var isProxied = false

    /// Target, names in lower case, and values, back to back.
    private var text: [UInt8] = []
    /// Where path and query stand in `text`.
    private var path = 0..<0
    private var query: Range<Int>?
    private var fields: [(name: Range<Int>, value: Range<Int>)] = []

    /// How the request gives the length of its body.
    package enum Body: Equatable, Sendable {
        case none
        case length(Int)
        case chunked
    }

    /// The path of the target, from its slash on, as it came: percent-encoded.
    package var pathBytes: RawSpan {
        @_lifetime(borrow self) borrowing get { text.byteSpan.extracting(path) }
    }

    /// What follows the question mark, as it came; empty when there is none.
    package var queryBytes: RawSpan {
        @_lifetime(borrow self) borrowing get { text.byteSpan.extracting(query ?? 0..<0) }
    }

    package var fieldCount: Int { fields.count }

    /// The value of the first header of this name, without space around it; nil if there is none.
    ///
    /// - Parameter name: in lower case.
    package func value(of name: String) -> String? {
        let bytes = text
        for field in fields {
            let isSought = name.withUTF8Span { $0.equalsBytes(bytes.byteSpan.extracting(field.name)) }
            if isSought { return String(repairingUTF8: bytes.byteSpan.extracting(field.value)) }
        }
        return nil
    }

    /// Lends each header, in order; names are in lower case.
    func forEachField(_ body: (_ name: RawSpan, _ value: RawSpan) -> Void) {
        let bytes = text
        for field in fields { body(bytes.byteSpan.extracting(field.name), bytes.byteSpan.extracting(field.value)) }
    }

    /// Adds a header that the request carries in another place; one of the same name that is there already counts
    /// before it.
    package mutating func add(_ name: String, _ value: String) {
        let (name, value) = (Array(name.utf8), Array(value.utf8))
        append(name: name.byteSpan, value: value.byteSpan)
    }

    // MARK: Building

    mutating func reset() {
        method = .other
        minorVersion = 1
        keepsAlive = true
        expectsContinue = false
        body = .none
        isProxied = false
        text.removeAll(keepingCapacity: true)
        fields.removeAll(keepingCapacity: true)
        path = 0..<0
        query = nil
    }

    /// Takes the target in origin form.
    mutating func setTarget(_ target: RawSpan) {
        let question = target.firstOffset(of: UInt8(ascii: "?"))
        text.append(contentsOf: [UInt8](copying: target))
        path = 0..<(question ?? target.byteCount)
        query = question.map { ($0 + 1)..<target.byteCount }
    }

    mutating func append(name: RawSpan, value: RawSpan) {
        if Self.isOfProxy(name) { isProxied = true }
        let start = text.count
        for at in 0..<name.byteCount { text.append(ASCII.lowercased(name[byteAt: at])) }
        let middle = text.count
        text.append(contentsOf: [UInt8](copying: value))
        fields.append((start..<middle, middle..<text.count))
    }
}

extension HTTPHead {
    /// Whether a header of this name comes from a proxy (RFC 7239; RFC 9110, section 7.6.3). Letters may have any case.
    static func isOfProxy(_ name: RawSpan) -> Bool {
        switch name.byteCount {
        case 3: name.equalsIgnoringCase("via")
        case 9: name.equalsIgnoringCase("forwarded")
        case 15: name.equalsIgnoringCase("x-forwarded-for")
        default: false
        }
    }
}

/// Classes of characters (RFC 9110, section 5.6).
package enum ASCII {
    static let space = UInt8(ascii: " ")
    static let tab = UInt8(ascii: "\t")
    static let carriageReturn = UInt8(ascii: "\r")
    static let lineFeed = UInt8(ascii: "\n")

    static func lowercased(_ byte: UInt8) -> UInt8 {
        UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
    }

    /// Whether the byte may stand in a method or a header's name.
    package static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: tokenMarks.contains(byte)
        }
    }

    private static let tokenMarks = Array("!#$%&'*+-.^_`|~".utf8)

    /// Whether the byte may stand in a header's value: visible, space, tab, or not ASCII.
    package static func isFieldText(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F || byte == tab }
}

extension RawSpan {
    /// Whether every byte fulfils the condition.
    func allBytes(_ condition: (UInt8) -> Bool) -> Bool {
        for at in 0..<byteCount where !condition(self[byteAt: at]) { return false }
        return true
    }

    /// Without spaces and tabs at both ends.
    @_lifetime(copy self)
    func trimmed() -> RawSpan {
        var start = 0
        var end = byteCount
        while start < end, self[byteAt: start] == ASCII.space || self[byteAt: start] == ASCII.tab { start += 1 }
        while end > start, self[byteAt: end - 1] == ASCII.space || self[byteAt: end - 1] == ASCII.tab { end -= 1 }
        return extracting(start..<end)
    }

    /// Whether these are the bytes of `text`, which is in lower case, letters of either case being equal.
    func equalsIgnoringCase(_ text: StaticString) -> Bool {
        guard byteCount == text.utf8CodeUnitCount else { return false }
        for at in 0..<byteCount where unsafe ASCII.lowercased(self[byteAt: at]) != text.utf8Start[at] { return false }
        return true
    }
}
