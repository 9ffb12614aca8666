internal import Basics

/// Ids for lines that do not name a document.
enum AutomaticID {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

    /// 20 characters of `[A-Za-z0-9]` that depend on the seed and the line alone, so that loading a line again makes
    /// the same document again.
    static func append(seed: UInt64, line: Int, to output: inout [UInt8]) {
        var random = SplitMix64(seed: seed &+ UInt64(line) &* SplitMix64.increment)
        for _ in 0..<2 {
            // Ten characters take 60 of the 64 bits.
            var number = random.next()
            for _ in 0..<10 {
                output.append(alphabet[Int(number % 62)])
                number /= 62
            }
        }
    }
}
