// The answer of one gRPC call as its client reads it: header fields, messages, trailers.

import Basics
import Calls

/// What has come of an answer. A plain value without I/O.
struct GRPCAnswer {
    /// Nil before the answer's head.
    private(set) var httpStatus: Int?
    /// Whether the head says that gRPC follows, and not, for example, a page of a proxy.
    private(set) var isGRPC = false
    private var code: StatusCode?
    private var text = ""
    /// Bytes of all header fields.
    private var fieldBytes = 0
    /// Nil for an encoding that was not offered.
    private var encoding: MessageEncoding? = .identity
    private var reader = MessageReader()
    /// The parts so far of a message that does not come whole.
    private var assembly: [UInt8] = []

    /// Takes a header field, of the head or of the trailers.
    ///
    /// - Returns: what ends the call; nil while the answer is good.
    mutating func take(_ name: RawSpan, _ value: RawSpan, fieldBytesMax: Int) -> CallOutcome? {
        fieldBytes += name.byteCount + value.byteCount
        if fieldBytes > fieldBytesMax {
            return CallOutcome(.resourceExhausted, "the header fields of the answer exceed \(fieldBytesMax) bytes")
        }
        if name.spells(":status") {
            httpStatus = Int(String(repairingUTF8: value))
        } else if name.spells("content-type") {
            isGRPC = String(repairingUTF8: value).hasPrefix("application/grpc")
        } else if name.spells("grpc-encoding") {
            encoding = MessageEncoding(value)
        } else if name.spells("grpc-status") {
            code = UInt8(String(repairingUTF8: value)).flatMap(StatusCode.init(rawValue:)) ?? .unknown
        } else if name.spells("grpc-message") {
            let encoded = String(repairingUTF8: value)
            text = String((PercentEncoding.decoded(encoded) ?? encoded).prefix(statusTextBytesMax))
        }
        return nil
    }

    /// Takes bytes of the body and hands on the messages that are complete.
    ///
    /// - Parameters:
    ///   - bytesMax: the largest message, before and after inflating.
    ///   - deliver: gets each message, lent.
    /// - Returns: what ends the call; nil while the answer is good.
    mutating func take(_ bytes: RawSpan, bytesMax: Int, deliver: (RawSpan) -> Void) -> CallOutcome? {
        // The body of another answer than gRPC's is a page for people: its status says enough.
        guard isGRPC else { return nil }
        var offset = 0
        while true {
            switch reader.next(bytes, &offset, bytesMax: bytesMax) {
            case .incomplete: return nil
            case .part(let range): assembly.append(contentsOf: bytes.extracting(range))
            case .whole(let range):
                if let failure = finish(bytes.extracting(range), bytesMax, deliver) { return failure }
            case .lastPart(let range):
                assembly.append(contentsOf: bytes.extracting(range))
                let whole = assembly
                assembly = []
                if let failure = finish(whole.byteSpan, bytesMax, deliver) { return failure }
            case .reservedFlag(let flag):
                return CallOutcome(.internal, "the server sent a message with the unknown flag \(flag)")
            case .tooLarge:
                return CallOutcome(.resourceExhausted, "the server sent a message of more than \(bytesMax) bytes")
            }
        }
    }

    private func finish(_ message: RawSpan, _ bytesMax: Int, _ deliver: (RawSpan) -> Void) -> CallOutcome? {
        guard reader.isCompressed else {
            deliver(message)
            return nil
        }
        guard let encoding, encoding != .identity else {
            return CallOutcome(.internal, "the server compressed a message in a way that it did not name")
        }
        do throws(InflateFailure) {
            let inflated = try Inflater.inflate(message, bytesMax: bytesMax)
            deliver(inflated.byteSpan)
            return nil
        } catch {
            return switch error {
            case .tooLarge:
                CallOutcome(.resourceExhausted, "the server sent a message of more than \(bytesMax) bytes")
            case .malformed: CallOutcome(.internal, "the server sent a compressed message that cannot be read")
            }
        }
    }

    /// The outcome when the server has ended the answer in order.
    var outcome: CallOutcome {
        if let code {
            guard code == .ok, reader.isInsideMessage else { return CallOutcome(code, code == .ok ? "" : text) }
            return CallOutcome(.internal, "the server ended the call inside a message")
        }
        guard let httpStatus else { return CallOutcome(.internal, "the server ended the call without an answer") }
        return CallOutcome(
            Self.code(ofHTTPStatus: httpStatus), "the server replied with HTTP status \(httpStatus) and not with gRPC")
    }

    /// The table of gRPC's page "HTTP to gRPC status code mapping".
    private static func code(ofHTTPStatus status: Int) -> StatusCode {
        switch status {
        case 400: .internal
        case 401: .unauthenticated
        case 403: .permissionDenied
        case 404: .unimplemented
        case 429, 502, 503, 504: .unavailable
        default: .unknown
        }
    }
}
