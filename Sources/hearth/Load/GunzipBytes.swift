import Basics
import CZlib
import Glibc

/// The contents of gzip files (RFC 1952), of several members too. Zeros at the end, as tapes and blocks pad files with,
/// are passed over, as gzip(1) does. Memory is bounded by two buffers.
final class GunzipBytes: InputBytes {
    private let source: any InputBytes
    private let path: String
    private var stream = z_stream()
    private var input: [UInt8] = []
    private var used = 0
    private var isInMember = true

    private static let inputBytes = 64 << 10

    init(_ source: any InputBytes, path: String) throws(CommandFailure) {
        self.source = source
        self.path = path
        let status = unsafe hearth_inflate_any(&stream)
        guard status == Z_OK else { throw CommandFailure("cannot decompress \(path): zlib has the status \(status)") }
    }

    deinit { _ = unsafe inflateEnd(&stream) }

    func read(into bytes: inout [UInt8], atMost count: Int) throws(CommandFailure) -> Bool {
        while true {
            if used == input.count {
                (input, used) = ([], 0)
                guard try source.read(into: &input, atMost: Self.inputBytes) else {
                    if isInMember { throw CommandFailure("\(path) is damaged: the compressed data ends too early") }
                    return false
                }
            }
            if !isInMember {
                while used < input.count, input[used] == 0 { used += 1 }
                if used == input.count { continue }
                guard input[used] == InputKind.gzip[0] else {
                    throw CommandFailure("\(path) has bytes after its compressed data that are not gzip")
                }
                unsafe inflateReset(&stream)
                isInMember = true
            }
            if try inflatePart(into: &bytes, count) { return true }
        }
    }

    /// Decompresses what it can.
    ///
    /// - Returns: whether there are new bytes.
    private func inflatePart(into bytes: inout [UInt8], _ count: Int) throws(CommandFailure) -> Bool {
        let start = bytes.count
        bytes.append(zeros: count)
        // Both buffers keep their places during the call, and zlib gets their sizes.
        let status = unsafe input.withUnsafeMutableBufferPointer { input in
            unsafe bytes.withUnsafeMutableBufferPointer { bytes -> Int32 in
                unsafe stream.next_in = input.baseAddress! + used
                stream.avail_in = UInt32(input.count - used)
                unsafe stream.next_out = bytes.baseAddress! + start
                stream.avail_out = UInt32(count)
                return unsafe inflate(&stream, Z_NO_FLUSH)
            }
        }
        used = input.count - Int(stream.avail_in)
        bytes.removeLast(Int(stream.avail_out))
        switch status {
        case Z_OK, Z_BUF_ERROR: break
        case Z_STREAM_END: isInMember = false
        default: throw CommandFailure("\(path) is damaged: it cannot be decompressed (zlib has the status \(status))")
        }
        return bytes.count > start
    }
}
