// The refusal of an HTTP/2 connection, without HPACK or state: the first request gets a reply, and the connection ends.

import Basics
import HTTPProtocols

/// Reads the frames of a client as far as its first request. A value without I/O.
///
/// A GOAWAY alone would not do: gRPC's C core takes the connection for a good one once it has seen SETTINGS, and opens
/// the next at once for as long as the call's deadline lasts.
struct RefusedHTTP2 {
    private static let frameHeaderBytes = 9
    private static let headers: UInt8 = 1

    /// Bytes of the preface, or of a frame's payload, that are still to be passed over.
    private var passing = HTTP2Preface.bytes.count

    /// Moves over the frames received.
    ///
    /// - Parameter consumed: set to the bytes that need not be shown again.
    /// - Returns: the stream of the first request; nil while none has come.
    mutating func firstRequest(_ bytes: RawSpan, consumed: inout Int) -> UInt32? {
        consumed = 0
        while true {
            let step = min(passing, bytes.byteCount - consumed)
            passing -= step
            consumed += step
            guard passing == 0, bytes.byteCount - consumed >= Self.frameHeaderBytes else { return nil }
            let length = (0..<3).reduce(0) { $0 << 8 | Int(bytes[byteAt: consumed + $1]) }
            if bytes[byteAt: consumed + 3] == Self.headers {
                return (5..<9).reduce(0) { $0 << 8 | UInt32(bytes[byteAt: consumed + $1]) } & 0x7FFF_FFFF
            }
            passing = Self.frameHeaderBytes + length
        }
    }

    /// What must come first.
    static let settings: [UInt8] = frame(4, 0, 0, [])

    /// The whole answer to a request: 503, which REST's clients understand, with UNAVAILABLE for those of gRPC.
    ///
    /// - Parameter text: ASCII without `%`, below 100 bytes.
    static func answer(_ stream: UInt32, _ text: String) -> [UInt8] {
        // Literals without indexing (RFC 7541, section 6.2.2); 8 is :status and 31 is content-type in the static table.
        let fields =
            [0x08] + string("503") + [0x0F, 0x10] + string("application/grpc")
            + [0] + string("grpc-status") + string("14") + [0] + string("grpc-message") + string(text)
        // END_STREAM and END_HEADERS.
        return frame(headers, 5, stream, fields)
    }

    /// - Parameter lastStream: the highest that got a reply; others were not processed, so their clients may try
    ///   again.
    static func goAway(lastStream: UInt32, _ text: String) -> [UInt8] {
        let enhanceYourCalm: UInt32 = 11
        return frame(7, 0, 0, bigEndian(lastStream) + bigEndian(enhanceYourCalm) + text.utf8)
    }

    private static func frame(_ kind: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
        [0, 0, UInt8(payload.count), kind, flags] + bigEndian(stream) + payload
    }

    private static func string(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + text.utf8 }

    private static func bigEndian(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
    }
}
