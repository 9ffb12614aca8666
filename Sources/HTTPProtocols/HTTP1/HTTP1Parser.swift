// Reading HTTP/1.1 requests from whatever bytes have come (RFC 9112), without I/O.
//
//     request line ──▶ header lines ──▶ .head ──▶ body by length ──────────────────────────▶ .end ──▶ the next request
//                                             └─▶ chunk size ──▶ chunk ──▶ ... ──▶ trailers ─┘
//
// Two servers that read the same bytes as different requests let one client smuggle a request past the other. So
// everything that could be read in two ways is refused, also where the RFC lets a server be lenient: bare LF or CR,
// folded headers, space before a colon, a length given twice or beside a transfer coding, anything but plain digits in
// a length, two credentials.

internal import Basics

/// Bounds of one request.
package struct HTTP1Limits: Sendable {
    /// Bytes of the request line and headers with their line ends, and the same again for trailers. A longer request
    /// line is refused with 414, longer headers with 431. Not above 32 KiB, so that an incomplete
    /// line always fits into the loop's read buffer.
    package var headBytesMax = 16 << 10
    /// Header lines, trailers included; past it 431.
    package var fieldsMax = 100
    /// The body without its chunked form; past it 413.
    package var bodyBytesMax = 10 << 20

    package init() {}
}

/// A parser of the requests of one connection, one after the other. A value without I/O.
package struct HTTP1Parser: Sendable {
    /// What the bytes brought.
    package enum Event: Equatable, Sendable {
        /// They have been used up to the offset, and what is left is part of something.
        case incomplete
        /// `head` is whole.
        case head
        /// A part of the body, as a range of the bytes.
        case body(Range<Int>)
        /// The request is whole. What follows belongs to the next.
        case end
    }

    /// Lines of chunk sizes, extensions included.
    private static let chunkLineBytesMax = 256
    private static let versionPrefix = Array("HTTP/".utf8)
    private static let host = Array("host".utf8)
    /// Empty lines before a request, which some clients send after a body (RFC 9112, section 2.2).
    private static let emptyLinesMax = 1

    package private(set) var head = HTTPHead()
    private let limits: HTTP1Limits
    private var state = State.requestLine
    /// Bytes after the offset in which no line end was found when they were shown last.
    private var scanned = 0
    private var headBytes = 0
    private var fieldCount = 0
    private var hostCount = 0
    private var hasAuthorization = false
    private var bodyBytes = 0
    private var emptyLines = 0
    private var closes = false

    private enum State: Equatable {
        case requestLine, fields, headEnd
        case body(left: Int)
        case chunkSize
        case chunk(left: Int)
        case chunkEnd, trailers
    }

    package init(limits: HTTP1Limits = HTTP1Limits()) {
        self.limits = limits
    }

    /// Whether nothing of a request has come yet.
    package var isBetweenRequests: Bool { state == .requestLine && scanned == 0 }

    /// Whether the head is whole and the body is not.
    package var isInBody: Bool {
        switch state {
        case .requestLine, .fields, .headEnd: false
        default: true
        }
    }

    /// What has been read of the head of the request that is arriving.
    package var headSoFar: HTTPHead { state == .requestLine ? HTTPHead() : head }

    /// Whether no byte of the body is missing.
    package var bodyIsWhole: Bool { state == .body(left: 0) }

    /// Continues from `offset` to the next event and moves the offset past what it used.
    ///
    /// - Parameter bytes: what came from the offset of the last call on; what was not used must be shown again.
    package mutating func next(_ bytes: RawSpan, _ offset: inout Int) throws(HTTP1Violation) -> Event {
        while true {
            switch state {
            case .requestLine:
                guard let line = try line(bytes, &offset, max: limits.headBytesMax, HTTP1Violation.targetTooLong) else {
                    return .incomplete
                }
                if line.isEmpty, emptyLines < Self.emptyLinesMax {
                    emptyLines += 1
                    continue
                }
                begin(line.count + 2)
                try readRequestLine(bytes.extracting(line))
                state = .fields
            case .fields:
                guard let line = try headLine(bytes, &offset) else { return .incomplete }
                if line.isEmpty {
                    try checkHead()
                    state = .headEnd
                    return .head
                }
                try readField(bytes.extracting(line), isTrailer: false)
            case .headEnd:
                switch head.body {
                case .none: state = .body(left: 0)
                case .length(let length): state = .body(left: length)
                case .chunked: state = .chunkSize
                }
            case .body(left: 0):
                return end()
            case .body(let left):
                guard let range = take(left, bytes, &offset) else { return .incomplete }
                state = .body(left: left - range.count)
                return .body(range)
            case .chunkSize:
                guard let line = try line(bytes, &offset, max: Self.chunkLineBytesMax, { _ in .chunkSize }) else {
                    return .incomplete
                }
                let size = try readChunkSize(bytes.extracting(line))
                if size == 0 {
                    headBytes = 0
                    state = .trailers
                } else {
                    state = .chunk(left: size)
                }
            case .chunk(let left):
                guard let range = take(left, bytes, &offset) else { return .incomplete }
                state = left == range.count ? .chunkEnd : .chunk(left: left - range.count)
                return .body(range)
            case .chunkEnd:
                guard let line = try line(bytes, &offset, max: 0, { _ in .chunkEnd }) else { return .incomplete }
                guard line.isEmpty else { throw .chunkEnd }
                state = .chunkSize
            case .trailers:
                guard let line = try headLine(bytes, &offset) else { return .incomplete }
                if line.isEmpty { return end() }
                try readField(bytes.extracting(line), isTrailer: true)
            }
        }
    }

    private mutating func begin(_ lineBytes: Int) {
        head.reset()
        headBytes = lineBytes
        fieldCount = 0
        hostCount = 0
        hasAuthorization = false
        bodyBytes = 0
        closes = false
    }

    private mutating func end() -> Event {
        state = .requestLine
        emptyLines = 0
        return .end
    }

    // MARK: Lines and numbers

    /// The next line without its end, or nil when that has not come.
    ///
    /// - Parameter tooLong: what to throw when the line is longer than `max` bytes.
    private mutating func line(
        _ bytes: RawSpan, _ offset: inout Int, max: Int, _ tooLong: (Int) -> HTTP1Violation
    ) throws(HTTP1Violation) -> Range<Int>? {
        guard let end = bytes.firstOffset(of: ASCII.lineFeed, from: offset + scanned) else {
            scanned = bytes.byteCount - offset
            // The last byte may be the CR of the end.
            if scanned > max + 1 { throw tooLong(max) }
            return nil
        }
        scanned = 0
        let start = offset
        if end - start > max + 1 { throw tooLong(max) }
        guard end > start, bytes[byteAt: end - 1] == ASCII.carriageReturn else { throw .bareLineFeed }
        offset = end + 1
        return start..<(end - 1)
    }

    /// A line of the head or of the trailers, within what is left for them.
    private mutating func headLine(_ bytes: RawSpan, _ offset: inout Int) throws(HTTP1Violation) -> Range<Int>? {
        let limit = limits.headBytesMax
        // Its own end, and the empty line that ends it all, belong to the head too.
        let found = try line(bytes, &offset, max: Swift.max(limit - headBytes - 4, 0)) { _ in .headTooLarge(limit) }
        if let found { headBytes += found.count + 2 }
        return found
    }

    /// As many of `left` bytes as have come; nil if none have.
    private func take(_ left: Int, _ bytes: RawSpan, _ offset: inout Int) -> Range<Int>? {
        let count = min(left, bytes.byteCount - offset)
        guard count > 0 else { return nil }
        defer { offset += count }
        return offset..<(offset + count)
    }

    // MARK: Lines

    /// `method SP request-target SP HTTP-version`
    private mutating func readRequestLine(_ line: RawSpan) throws(HTTP1Violation) {
        guard let first = line.firstOffset(of: ASCII.space),
            let second = line.firstOffset(of: ASCII.space, from: first + 1),
            line.firstOffset(of: ASCII.space, from: second + 1) == nil
        else { throw .requestLine }
        let method = line.extracting(first: first)
        guard !method.isEmpty, method.allBytes(ASCII.isToken) else { throw .requestLine }
        head.minorVersion = try Self.minorVersion(line.extracting(droppingFirst: second + 1))
        head.keepsAlive = head.minorVersion > 0
        head.method = HTTPMethod(method)
        try readTarget(line.extracting((first + 1)..<second))
    }

    /// `HTTP/1.0` or `HTTP/1.` and a higher digit, which means 1.1 (RFC 9110, section 2.5).
    private static func minorVersion(_ text: RawSpan) throws(HTTP1Violation) -> Int {
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        guard text.byteCount == 8, text.startsWith(versionPrefix.byteSpan), digits ~= text[byteAt: 5],
            text[byteAt: 6] == UInt8(ascii: "."),
            digits ~= text[byteAt: 7]
        else { throw .requestLine }
        guard text[byteAt: 5] == UInt8(ascii: "1") else { throw .version }
        return text[byteAt: 7] == UInt8(ascii: "0") ? 0 : 1
    }

    /// A path, `*` for OPTIONS, or the whole URI as proxies send it (RFC 9112, section 3.2).
    private mutating func readTarget(_ target: RawSpan) throws(HTTP1Violation) {
        guard !target.isEmpty, target.allBytes({ 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "#") }) else { throw .target }
        let slash = UInt8(ascii: "/")
        if target[byteAt: 0] == slash { return head.setTarget(target) }
        if target.byteCount == 1, target[byteAt: 0] == UInt8(ascii: "*"), head.method == .options {
            return head.setTarget(target)
        }
        let scheme = "http://".utf8.count
        guard target.byteCount > scheme, target.extracting(first: scheme).equalsIgnoringCase("http://") else {
            throw .target
        }
        try readURI(target.extracting(droppingFirst: scheme))
    }

    /// The rest of a URI, after its scheme. An empty path is `/`, or `*` for OPTIONS. The authority counts before the
    /// header Host, which a proxy may have passed on as it came.
    private mutating func readURI(_ rest: RawSpan) throws(HTTP1Violation) {
        let (slash, question) = (UInt8(ascii: "/"), UInt8(ascii: "?"))
        var end = 0
        while end < rest.byteCount, rest[byteAt: end] != slash, rest[byteAt: end] != question { end += 1 }
        let authority = rest.extracting(first: end)
        guard !authority.isEmpty, authority.allBytes({ $0 != UInt8(ascii: "@") }) else { throw .target }
        if end < rest.byteCount, rest[byteAt: end] == slash {
            head.setTarget(rest.extracting(droppingFirst: end))
        } else {
            let isAsterisk = end == rest.byteCount && head.method == .options
            let path = [isAsterisk ? UInt8(ascii: "*") : slash] + [UInt8](copying: rest.extracting(droppingFirst: end))
            head.setTarget(path.byteSpan)
        }
        head.append(name: Self.host.byteSpan, value: authority)
    }

    /// `name ":" OWS value OWS`
    private mutating func readField(_ line: RawSpan, isTrailer: Bool) throws(HTTP1Violation) {
        fieldCount += 1
        if fieldCount > limits.fieldsMax { throw .tooManyFields(limits.fieldsMax) }
        if line[byteAt: 0] == ASCII.space || line[byteAt: 0] == ASCII.tab { throw .foldedField }
        guard let colon = line.firstOffset(of: UInt8(ascii: ":")), colon > 0,
            line.extracting(first: colon).allBytes(ASCII.isToken)
        else { throw .fieldName }
        let name = line.extracting(first: colon)
        let value = line.extracting(droppingFirst: colon + 1).trimmed()
        guard value.allBytes(ASCII.isFieldText) else { throw .fieldValue }
        // Trailers are checked and dropped: nothing that we use may stand in one.
        if isTrailer { return }
        try interpret(name, value)
        head.append(name: name, value: value)
    }

    /// Takes in what decides about the message itself.
    private mutating func interpret(_ name: RawSpan, _ value: RawSpan) throws(HTTP1Violation) {
        if name.equalsIgnoringCase("content-length") {
            guard head.body == .none else { throw .repeatedLength }
            head.body = .length(try length(value))
        } else if name.equalsIgnoringCase("transfer-encoding") {
            guard head.body == .none else { throw .repeatedLength }
            guard head.minorVersion > 0 else { throw .chunkedInOldVersion }
            guard value.equalsIgnoringCase("chunked") else { throw .transferCoding }
            head.body = .chunked
        } else if name.equalsIgnoringCase("host") {
            hostCount += 1
        } else if name.equalsIgnoringCase("authorization") {
            if hasAuthorization { throw .repeatedAuthorization }
            hasAuthorization = true
        } else if name.equalsIgnoringCase("connection") {
            readConnection(value)
        } else if name.equalsIgnoringCase("expect"), head.minorVersion > 0 {
            guard value.equalsIgnoringCase("100-continue") else { throw .expectation }
            head.expectsContinue = true
        }
    }

    private func length(_ value: RawSpan) throws(HTTP1Violation) -> Int {
        // Eighteen digits fit into an Int whatever they are.
        guard 1...18 ~= value.byteCount, value.allBytes({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else {
            throw .contentLength
        }
        var length = 0
        for at in 0..<value.byteCount { length = length * 10 + Int(value[byteAt: at]) - 0x30 }
        guard length <= limits.bodyBytesMax else { throw .bodyTooLarge(limits.bodyBytesMax) }
        return length
    }

    /// `close` wins over `keep-alive`, which only HTTP/1.0 needs.
    private mutating func readConnection(_ value: RawSpan) {
        var start = 0
        while start <= value.byteCount {
            let end = value.firstOffset(of: UInt8(ascii: ","), from: start) ?? value.byteCount
            let option = value.extracting(start..<end).trimmed()
            if option.equalsIgnoringCase("close") { closes = true }
            if option.equalsIgnoringCase("keep-alive"), head.minorVersion == 0 { head.keepsAlive = true }
            start = end + 1
        }
        if closes { head.keepsAlive = false }
    }

    private func checkHead() throws(HTTP1Violation) {
        guard hostCount == 1 || head.minorVersion == 0 && hostCount == 0 else { throw .host }
    }

    /// `1*HEXDIG [";" extensions]`; extensions are ignored.
    private mutating func readChunkSize(_ line: RawSpan) throws(HTTP1Violation) -> Int {
        let digits = line.extracting(first: line.firstOffset(of: UInt8(ascii: ";")) ?? line.byteCount)
        guard digits.byteCount <= 15, line.allBytes(ASCII.isFieldText), let number = Hexadecimal.number(digits)
        else { throw .chunkSize }
        let size = Int(number)
        guard size <= limits.bodyBytesMax - bodyBytes else { throw .bodyTooLarge(limits.bodyBytesMax) }
        bodyBytes += size
        return size
    }
}
