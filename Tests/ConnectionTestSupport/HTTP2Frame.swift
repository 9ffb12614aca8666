// HTTP/2 frames written and read byte by byte, so that tests can break every rule.

import Basics
import CNGHTTP2

/// One frame of RFC 9113, well made or not.
package struct HTTP2Frame: Equatable {
    package enum Kind: UInt8 {
        case data, headers, priority, reset, settings, pushPromise, ping, goAway, windowUpdate, continuation
    }

    package var kind: UInt8
    package var flags: UInt8
    package var stream: UInt32
    package var payload: [UInt8]

    package static let endStream: UInt8 = 1
    package static let ack: UInt8 = 1
    package static let endHeaders: UInt8 = 4
    package static let padded: UInt8 = 8

    package init(_ kind: Kind, _ flags: UInt8 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []) {
        self.kind = kind.rawValue
        self.flags = flags
        self.stream = stream
        self.payload = payload
    }

    package var bytes: [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16 & 255), UInt8(count >> 8 & 255), UInt8(count & 255), kind, flags] + bigEndian(stream)
            + payload
    }

    package func isKind(_ kind: Kind) -> Bool { self.kind == kind.rawValue }
    package var endsStream: Bool { flags & Self.endStream != 0 && (isKind(.data) || isKind(.headers)) }

    /// The integer of RST_STREAM and WINDOW_UPDATE, or GOAWAY's error code.
    package var code: UInt32 { integer(at: isKind(.goAway) ? 4 : 0) }
    /// GOAWAY's last stream.
    package var lastStream: UInt32 { integer(at: 0) }
    /// GOAWAY's text.
    package var text: String { String(decoding: payload.dropFirst(8), as: UTF8.self) }

    private func integer(at offset: Int) -> UInt32 { payload[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) } }

    /// Takes the first whole frame off `bytes`.
    package static func take(from bytes: inout [UInt8]) -> HTTP2Frame? {
        guard bytes.count >= 9 else { return nil }
        let count = Int(bytes[0]) << 16 | Int(bytes[1]) << 8 | Int(bytes[2])
        guard bytes.count >= 9 + count else { return nil }
        var frame = HTTP2Frame(.data, bytes[4], Array(bytes[9..<9 + count]))
        frame.kind = bytes[3]
        frame.stream = bytes[5..<9].reduce(0) { $0 << 8 | UInt32($1) }
        bytes.removeFirst(9 + count)
        return frame
    }

    private init(_ kind: Kind, _ flags: UInt8, _ payload: [UInt8]) { self.init(kind, flags, stream: 0, payload) }

    // MARK: Valid frames

    package static func settings(_ values: (UInt16, UInt32)...) -> HTTP2Frame {
        HTTP2Frame(.settings, 0, values.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 255)] + bigEndian($0.1) })
    }

    package static func request(
        _ path: String, stream: UInt32, endStream: Bool = false, fields: [(String, String)] = []
    ) -> HTTP2Frame {
        headers(grpcFields(path) + fields, stream: stream, endStream: endStream)
    }

    package static func headers(_ fields: [(String, String)], stream: UInt32, endStream: Bool = false) -> HTTP2Frame {
        HTTP2Frame(.headers, endHeaders | (endStream ? Self.endStream : 0), stream: stream, HTTP2Frame.encode(fields))
    }

    package static func grpcFields(_ path: String) -> [(String, String)] {
        [
            (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"), ("te", "trailers"),
            ("content-type", "application/grpc"),
        ]
    }

    package static func data(_ payload: [UInt8], stream: UInt32, endStream: Bool = true) -> HTTP2Frame {
        HTTP2Frame(.data, endStream ? Self.endStream : 0, stream: stream, payload)
    }

    package static func window(_ increment: UInt32, stream: UInt32) -> HTTP2Frame {
        HTTP2Frame(.windowUpdate, stream: stream, bigEndian(increment))
    }

    package static func reset(_ code: UInt32, stream: UInt32) -> HTTP2Frame {
        HTTP2Frame(.reset, stream: stream, bigEndian(code))
    }

    /// HPACK at its plainest: literal fields without indexing and without Huffman's code.
    package static func encode(_ fields: [(String, String)]) -> [UInt8] {
        fields.flatMap { [0] + text($0.0) + text($0.1) }
    }

    private static func text(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        guard bytes.count >= 127 else { return [UInt8(bytes.count)] + bytes }
        var rest = bytes.count - 127
        var length: [UInt8] = [127]
        while rest >= 128 {
            length.append(UInt8(rest & 127 | 128))
            rest >>= 7
        }
        return length + [UInt8(rest)] + bytes
    }
}

package func bigEndian(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }

/// A message with gRPC's prefix.
package func grpcMessage(_ payload: [UInt8], flag: UInt8 = 0) -> [UInt8] {
    [flag] + bigEndian(UInt32(payload.count)) + payload
}

/// Reads the header blocks of one connection, in their order.
package final class HeaderReader {
    private var inflater: OpaquePointer?

    package init() { nghttp2_hd_inflate_new(&inflater) }

    deinit { nghttp2_hd_inflate_del(inflater) }

    /// The fields of a block that is whole; nil when it is malformed.
    package func read(_ block: [UInt8]) -> [String: String]? {
        var fields: [String: String] = [:]
        var block = block
        return block.withUnsafeMutableBufferPointer { bytes in
            var place = bytes.baseAddress!
            var left = bytes.count
            while true {
                var field = nghttp2_nv()
                var flags: Int32 = 0
                let taken = nghttp2_hd_inflate_hd2(inflater, &field, &flags, place, left, 1)
                guard taken >= 0 else { return nil }
                place += taken
                left -= taken
                if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                    let name = String(
                        decoding: UnsafeBufferPointer(start: field.name, count: field.namelen), as: UTF8.self)
                    fields[name] = String(
                        decoding: UnsafeBufferPointer(start: field.value, count: field.valuelen), as: UTF8.self)
                }
                if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
                    nghttp2_hd_inflate_end_headers(inflater)
                    return fields
                }
                if taken == 0, left == 0 { return nil }
            }
        }
    }
}

/// What came back on one stream, as far as it came.
package struct HTTP2Answer: Equatable {
    /// Header blocks in their order: head and trailers, or both in one.
    package var blocks: [[String: String]] = []
    package var data: [UInt8] = []
    package var reset: UInt32?
    package var isEnded = false

    package var status: Int? { blocks.last?["grpc-status"].flatMap { Int($0) } }
    package var text: String? { blocks.last?["grpc-message"] }
    package var head: [String: String] { blocks.first ?? [:] }

    /// The messages, if the bytes are whole ones.
    package var messages: [[UInt8]]? {
        var messages: [[UInt8]] = []
        var rest = data[...]
        while !rest.isEmpty {
            guard rest.count >= 5, rest.first == 0 else { return nil }
            let count = rest.dropFirst().prefix(4).reduce(0) { $0 << 8 | Int($1) }
            guard rest.count >= 5 + count else { return nil }
            messages.append(Array(rest.dropFirst(5).prefix(count)))
            rest = rest.dropFirst(5 + count)
        }
        return messages
    }
}

/// Sorts what a server sends by stream.
package struct HTTP2Transcript {
    package let headers = HeaderReader()
    private var unread: [UInt8] = []
    package private(set) var answers: [UInt32: HTTP2Answer] = [:]
    package private(set) var frames: [HTTP2Frame] = []

    package init() {}

    package mutating func add(_ bytes: [UInt8]) {
        unread += bytes
        while let frame = HTTP2Frame.take(from: &unread) {
            frames.append(frame)
            guard frame.stream != 0 else { continue }
            if frame.isKind(.headers) {
                answers[frame.stream, default: HTTP2Answer()].blocks.append(headers.read(frame.payload) ?? [:])
            }
            if frame.isKind(.data) { answers[frame.stream, default: HTTP2Answer()].data += frame.payload }
            if frame.isKind(.reset), answers[frame.stream]?.isEnded != true {
                answers[frame.stream, default: HTTP2Answer()].reset = frame.code
            }
            if frame.endsStream { answers[frame.stream]?.isEnded = true }
        }
    }

    package var goAways: [HTTP2Frame] { frames.filter { $0.isKind(.goAway) } }
}
