// What must hold for the HTTP/1.1 parser, whatever bytes arrive. Called by tests and by the fuzzer.

import Basics

#if canImport(HTTPProtocols)
    @testable import HTTPProtocols
#endif

enum HTTP1ParserCheck {
    static let limits: HTTP1Limits = {
        var limits = HTTP1Limits()
        limits.headBytesMax = 400
        limits.fieldsMax = 8
        limits.bodyBytesMax = 300
        return limits
    }()

    /// The broken property, or nil.
    static func violation(_ bytes: RawSpan) -> String? {
        let whole = understand(bytes, chunk: .max)
        if let broken = whole.broken { return broken }
        for chunk in [1, 2 + bytes.byteCount % 11] {
            let pieces = understand(bytes, chunk: chunk)
            if let broken = pieces.broken { return "in pieces of \(chunk): \(broken)" }
            if pieces.log != whole.log {
                return "understood \(whole.log) whole and \(pieces.log) in pieces of \(chunk)"
            }
        }
        return nil
    }

    /// What the parser makes of the bytes, shown in chunks: a line for each request, and the violation that ends them.
    static func understand(_ bytes: RawSpan, chunk: Int) -> (log: [String], broken: String?) {
        var parser = HTTP1Parser(limits: limits)
        var log: [String] = []
        var body: [UInt8] = []
        var hasHead = false
        var offset = 0
        var available = 0
        while available < bytes.byteCount {
            available += min(chunk, bytes.byteCount - available)
            let shown = bytes.extracting(first: available)
            events: while true {
                let before = offset
                let event: HTTP1Parser.Event
                do throws(HTTP1Violation) {
                    event = try parser.next(shown, &offset)
                } catch {
                    log.append("\(error.status.code) \(error.text)")
                    return (log, nil)
                }
                if offset < before || offset > available {
                    return (log, "the offset moves from \(before) to \(offset)")
                }
                switch event {
                case .incomplete:
                    // What is left must be able to grow into a line, or the connection could stall.
                    if available - offset > limits.headBytesMax + 2 {
                        return (log, "\(available - offset) bytes are left lying")
                    }
                    break events
                case .head:
                    if hasHead { return (log, "two heads for one request") }
                    hasHead = true
                    let head = parser.head
                    if head.fieldCount > limits.fieldsMax { return (log, "too many fields") }
                    log.append("\(head.method) \(head.minorVersion) \(head.keepsAlive) \(head.body)")
                    log.append(String(repairingUTF8: head.pathBytes) + "?" + String(repairingUTF8: head.queryBytes))
                    log.append(head.value(of: "x") ?? "-")
                case .body(let range):
                    if !hasHead || range.isEmpty || range.upperBound > offset {
                        return (log, "a strange part of a body: \(range)")
                    }
                    body += [UInt8](copying: shown.extracting(range))
                    if body.count > limits.bodyBytesMax { return (log, "the body is too large") }
                case .end:
                    if !hasHead { return (log, "a request without a head") }
                    if case .length(let length) = parser.head.body, length != body.count {
                        return (log, "the body's length is wrong")
                    }
                    log.append(String(decoding: body, as: UTF8.self))
                    hasHead = false
                    body = []
                }
            }
        }
        return (log, nil)
    }
}
