// The end of a gRPC call as header fields: a code in digits, and a text in percent-encoding.

import Basics
import Calls

enum StatusFields {
    /// The text as `grpc-message` carries it: UTF-8 with every byte outside 0x20...0x7E, and `%` itself, as `%XX`.
    ///
    /// Cut at ``statusTextBytesMax`` bytes before encoding, at the start of a character.
    static func encode(_ text: String) -> [UInt8] {
        var encoded: [UInt8] = []
        encoded.reserveCapacity(text.utf8.count)
        var taken = 0
        for scalar in text.unicodeScalars {
            let bytes = scalar.utf8
            taken += bytes.count
            if taken > statusTextBytesMax { break }
            for byte in bytes { append(byte, to: &encoded) }
        }
        return encoded
    }

    private static func append(_ byte: UInt8, to encoded: inout [UInt8]) {
        if 0x20...0x7E ~= byte, byte != UInt8(ascii: "%") { return encoded.append(byte) }
        PercentEncoding.appendEncoded(byte, to: &encoded)
    }
}
