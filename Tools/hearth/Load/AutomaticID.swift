/// Ids for lines that do not name a document.
enum AutomaticID {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

    /// 20 characters of `[A-Za-z0-9]` that depend on the seed and the line alone, so that loading a line again makes
    /// the same document again.
    static func append(seed: UInt64, line: Int, to output: inout [UInt8]) {
        var state = seed &+ UInt64(line) &* 0x9E37_79B9_7F4A_7C15
        for _ in 0..<2 {
            // Ten characters take 60 of the 64 bits.
            var number = mix(&state)
            for _ in 0..<10 {
                output.append(alphabet[Int(number % 62)])
                number /= 62
            }
        }
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    private static func mix(_ state: inout UInt64) -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
