internal import Basics

/// Base64 in the URL alphabet without padding (RFC 7515, section 2), as tokens and keys use it.
package enum Base64URL {
    /// The bytes that a text spells; nil for padding, white space, another alphabet or unused bits that are not zero.
    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        let bytes = Array(text)
        let isPlain = bytes.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        return isPlain && bytes.count % 4 != 1 ? Base64.decodeAnyForm(bytes.span) : nil
    }

    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        Base64.append(bytes.byteSpan, to: &text)
        for index in text.indices {
            if text[index] == UInt8(ascii: "+") { text[index] = UInt8(ascii: "-") }
            if text[index] == UInt8(ascii: "/") { text[index] = UInt8(ascii: "_") }
        }
        while text.last == UInt8(ascii: "=") { text.removeLast() }
        return String(decoding: text, as: UTF8.self)
    }
}
