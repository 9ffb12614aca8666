// What an HTTP/2 session takes in before it says no.

import Calls

/// Limits of one HTTP/2 connection; their defaults and reasons stand in ``ServerConfiguration``.
struct HTTP2Limits: Sendable {
    /// Calls open at once: SETTINGS_MAX_CONCURRENT_STREAMS.
    var streamsMax: UInt32
    /// One message, before and after inflating.
    var messageBytesMax: Int
    /// Messages that are not complete or cannot be served yet, together.
    var assemblyBytesMax: Int
    /// SETTINGS_MAX_FRAME_SIZE, in the range that HTTP/2 has for it.
    var frameBytesMax: UInt32
    /// SETTINGS_INITIAL_WINDOW_SIZE.
    var streamWindowBytes: UInt32
    var connectionWindowBytes: UInt32
    /// Header fields of one request: SETTINGS_MAX_HEADER_LIST_SIZE.
    var metadataBytesMax: Int
    /// Streams that the client may reset, or on which it may break a rule, at once, and in a second in the long run.
    var resetsMax: UInt64
    var resetsPerSecond: UInt64
    /// Frames that ask for work and bring nothing (PING, SETTINGS, empty DATA, malformed ones) at once, and in a second
    /// in the long run.
    var idleFramesMax: UInt64
    var idleFramesPerSecond: UInt64
    /// Unsent bytes of answers beyond which no further request is begun while the connection's window is shut.
    var pauseBytes: Int
    /// The same while it is open.
    var keptBackBytesMax: Int
    /// Whether the `authorization` of requests is kept.
    var keepsAuthorization = false
    /// Called with the `user-agent` of a connection's first call.
    var onAgent: @Sendable (String) -> Void = { _ in }
    /// The trusted proxies, if the client is one of them; nil lets the fields of proxies pass.
    var trustedProxies: TrustedProxies?
    /// Whether requests other than gRPC calls are served.
    var servesHTTP = false
    /// Header fields of such a request.
    var httpFieldsMax = 100

    /// Fields beyond this many times the limit end the connection. Proxies that ignore the limit have a lower one
    /// themselves, and a byte that names a long entry of the table costs as much as the entry.
    static let metadataExcess = 4
    /// The range of SETTINGS_MAX_FRAME_SIZE, RFC 9113 section 6.5.2.
    static let frameBytesRange: ClosedRange<UInt32> = 16_384...16_777_215
    /// No window may grow beyond this, RFC 9113 section 6.9.1.
    static let windowBytesMax: UInt32 = 0x7FFF_FFFF
    /// Frames that one header list may take beyond its first.
    static let continuationsMax = 8
}
