// Damaged inputs for parsers.

extension SeededGenerator {
    /// Bytes with parts removed, repeated and replaced, at one to four places.
    ///
    /// - Parameter replacements: what bytes are replaced with; nil takes any bytes.
    package mutating func damaged(_ bytes: [UInt8], replacements: [UInt8]? = nil) -> [UInt8] {
        var bytes = bytes
        for _ in 0...below(4) where !bytes.isEmpty {
            let start = below(bytes.count)
            let end = min(bytes.count, start + below(12))
            switch below(3) {
            case 0: bytes.removeSubrange(start..<end)
            case 1: bytes.insert(contentsOf: bytes[start..<end], at: below(bytes.count))
            default: bytes[start] = replacements.map { pick($0) } ?? UInt8(below(256))
            }
        }
        return bytes
    }
}
