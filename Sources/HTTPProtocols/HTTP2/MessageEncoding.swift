// Compressed gRPC messages: what `grpc-encoding` may say, and inflating within a bound, a piece at a time.

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
    /// The whole message, inflated.
    ///
    /// Memory follows what really comes out, not what the sender claims, and never exceeds `bytesMax` by more than one
    /// byte.
    static func inflate(_ bytes: RawSpan, bytesMax: Int) throws(InflateFailure) -> [UInt8] {
        let inflation = Inflation(bytesMax: bytesMax)
        while try !inflation.step(bytes, pieceBytes: bytesMax + 1) {}
        return inflation.output
    }
}

/// A message that is inflated in steps: ten KiB may become ten MiB, which take some ten milliseconds. Confined to a
/// loop.
@safe final class Inflation {
    private static let firstBytes = 16 << 10

    // Owner: this object. zlib's state refers to the place, and is nil before the first step.
    private let stream: UnsafeMutablePointer<z_stream>
    private let bytesMax: Int
    private var consumed = 0
    private var written = 0
    /// The message, once a step has returned true. Before that its length is the memory that is used.
    private(set) var output: [UInt8] = []

    init(bytesMax: Int) {
        self.bytesMax = bytesMax
        unsafe stream = .allocate(capacity: 1)
        unsafe stream.initialize(to: z_stream())
    }

    deinit {
        if unsafe stream.pointee.state != nil { unsafe inflateEnd(stream) }
        unsafe stream.deallocate()
    }

    /// Inflates at most `pieceBytes` more.
    ///
    /// - Parameter bytes: all of the compressed message, the same in every step.
    /// - Returns: whether the message is complete.
    func step(_ bytes: RawSpan, pieceBytes: Int) throws(InflateFailure) -> Bool {
        if unsafe stream.pointee.state == nil {
            guard unsafe hearth_inflate_any(stream) == Z_OK else { throw .malformed }
        }
        let end = min(written + pieceBytes, bytesMax + 1)
        var result = Z_OK
        // zlib only reads its input, though its type does not say so; both buffers outlive each call of `inflate`.
        unsafe bytes.withUnsafeBytes { input in
            let start = unsafe UnsafeMutableRawPointer(mutating: input.baseAddress)
            unsafe stream.pointee.next_in = unsafe start?.advanced(by: consumed).assumingMemoryBound(to: UInt8.self)
            unsafe stream.pointee.avail_in = UInt32(input.count - consumed)
            while result == Z_OK, written < end { result = inflateInto(upTo: end) }
            unsafe consumed = input.count - Int(stream.pointee.avail_in)
        }
        guard written <= bytesMax else { throw .tooLarge }
        if result == Z_OK { return false }
        // Bytes after the end of the compressed data are not a message.
        guard result == Z_STREAM_END, consumed == bytes.byteCount else { throw .malformed }
        output.removeLast(output.count - written)
        return true
    }

    /// Calls zlib once.
    private func inflateInto(upTo end: Int) -> Int32 {
        if written == output.count {
            let more = min(max(output.count, Self.firstBytes), bytesMax + 1 - output.count)
            output.append(zeros: more)
        }
        return unsafe output.withUnsafeMutableBufferPointer { room in
            let roomEnd = min(room.count, end)
            unsafe stream.pointee.next_out = room.baseAddress! + written
            unsafe stream.pointee.avail_out = UInt32(roomEnd - written)
            let result = unsafe CZlib.inflate(stream, Z_NO_FLUSH)
            unsafe written = roomEnd - Int(stream.pointee.avail_out)
            return result
        }
    }
}

/// A compressed message that is too long to be inflated at once, and what has come after it. Confined to a loop.
final class InflatingMessage {
    private let inflation: Inflation
    private let compressed: [UInt8]
    /// What came on the stream since.
    private(set) var following: [UInt8] = []

    init(_ inflation: Inflation, _ compressed: RawSpan) {
        self.inflation = inflation
        self.compressed = [UInt8](copying: compressed)
    }

    /// The message, once ``step(pieceBytes:)`` has returned true.
    var output: [UInt8] { inflation.output }

    /// Memory that is used.
    var byteCount: Int { compressed.count + following.count + inflation.output.count }

    func follow(_ bytes: RawSpan) { unsafe bytes.withUnsafeBytes { unsafe following.append(contentsOf: $0) } }

    /// Inflates at most `pieceBytes` more; true when the message is complete.
    func step(pieceBytes: Int) throws(InflateFailure) -> Bool {
        let compressed = compressed
        return try inflation.step(compressed.byteSpan, pieceBytes: pieceBytes)
    }
}
