// Compressed bytes for tests.

import Basics
import CZlib

enum Compressed {
    /// In zlib's format, which gRPC calls deflate.
    static func zlib(_ bytes: [UInt8]) -> [UInt8] {
        var count = compressBound(UInt(bytes.count))
        var compressed = [UInt8](repeating: 0, count: Int(count))
        let result = compress(&compressed, &count, bytes, UInt(bytes.count))
        precondition(result == Z_OK, "zlib compresses")
        return Array(compressed[..<Int(count)])
    }
}
