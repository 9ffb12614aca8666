// Compressed gRPC messages: what `grpc-encoding` may say, and inflating within a bound.

import Basics
import CZlib

/// How the messages of a request may be compressed.
enum MessageEncoding: UInt8, Equatable, Sendable {
    case identity
    case gzip
    /// The zlib format, RFC 1950, under the name that HTTP gave it.
    case deflate

    init?(_ name: RawSpan) {
        if name.spells("identity") {
            self = .identity
        } else if name.spells("gzip") {
            self = .gzip
        } else if name.spells("deflate") {
            self = .deflate
        } else {
            return nil
        }
    }
}

/// Why a compressed message could not be inflated.
enum InflateFailure: Error, Equatable {
    /// It is longer than the limit; what was inflated up to there is dropped.
    case tooLarge
    /// It is not what `grpc-encoding` says, or it is cut off.
    case malformed
}

enum Inflater {
    private static let firstBytes = 16 << 10

    /// The whole message, inflated.
    ///
    /// Memory follows what really comes out, not what the sender claims, and never exceeds `bytesMax` by more than one
    /// byte.
    static func inflate(_ bytes: RawSpan, bytesMax: Int) throws(InflateFailure) -> [UInt8] {
        var stream = unsafe z_stream()
        guard unsafe hearth_inflate_any(&stream) == Z_OK else { throw .malformed }
        defer { unsafe inflateEnd(&stream) }
        var output = [UInt8](repeating: 0, count: min(firstBytes, bytesMax + 1))
        var written = 0
        var result = Z_OK
        // zlib only reads its input, though its type does not say so; both buffers outlive each call of `inflate`.
        unsafe bytes.withUnsafeBytes { input in
            let start = unsafe UnsafeMutableRawPointer(mutating: input.baseAddress)
            unsafe stream.next_in = unsafe start?.assumingMemoryBound(to: UInt8.self)
            unsafe stream.avail_in = UInt32(input.count)
            while result == Z_OK {
                if written == output.count {
                    guard written <= bytesMax else { return }
                    output.append(contentsOf: repeatElement(0, count: min(output.count, bytesMax + 1 - output.count)))
                }
                unsafe output.withUnsafeMutableBufferPointer { room in
                    unsafe stream.next_out = room.baseAddress! + written
                    unsafe stream.avail_out = UInt32(room.count - written)
                    result = unsafe CZlib.inflate(&stream, Z_NO_FLUSH)
                    unsafe written = room.count - Int(stream.avail_out)
                }
            }
        }
        guard written <= bytesMax else { throw .tooLarge }
        // Bytes after the end of the compressed data are not a message.
        guard result == Z_STREAM_END, unsafe stream.avail_in == 0 else { throw .malformed }
        output.removeLast(output.count - written)
        return output
    }
}
