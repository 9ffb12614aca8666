// `google.protobuf.FieldMask` as text: paths in lowerCamelCase, separated by commas.

internal import Basics
internal import DocumentJSON
internal import DocumentModel

enum FieldMaskText {
    /// Appends the message as quoted text.
    static func append(_ bytes: RawSpan, to output: inout ByteBuffer) throws(InvalidDocument) {
        var text: [UInt8] = []
        var reader = WireReader(bytes)
        while let tag = try reader.nextTag() {
            guard tag.fieldNumber == FieldNumber.Protobuf.FieldMask.paths else {
                try reader.skip(tag)
                continue
            }
            if !text.isEmpty { text.append(UInt8(ascii: ",")) }
            let path = try reader.string(tag)
            var isNext = false
            for byte in path.utf8 {
                if byte == UInt8(ascii: "_") {
                    isNext = true
                } else {
                    let isLower = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                    text.append(isNext && isLower ? byte - 32 : byte)
                    isNext = false
                }
            }
        }
        output.appendQuoted(text)
    }

    /// Appends the paths of a text as fields of the message. Paths with underscores are taken as they are.
    static func append(_ text: String, as output: inout ByteBuffer) {
        for path in text.split(separator: ",") {
            var name: [UInt8] = []
            for byte in path.utf8 {
                if (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) {
                    name += [UInt8(ascii: "_"), byte + 32]
                } else {
                    name.append(byte)
                }
            }
            output.appendField(FieldNumber.Protobuf.FieldMask.paths, bytes: name)
        }
    }
}

/// `google.protobuf.Duration` as text: seconds with an `s`.
enum DurationText {
    /// Appends the fields of the message.
    /// - Returns: false for another text.
    static func append(_ text: String, as output: inout ByteBuffer) -> Bool {
        guard text.hasSuffix("s") else { return false }
        let isNegative = text.hasPrefix("-")
        let digits = text.dropFirst(isNegative ? 1 : 0).dropLast()
        let parts = digits.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(isDigit) }),
            parts.count == 1 || parts[1].count <= 9, let seconds = Int64(parts[0]), seconds <= 315_576_000_000
        else { return false }
        let fraction = parts.count == 2 ? String(parts[1]) + String(repeating: "0", count: 9 - parts[1].count) : "0"
        let nanoseconds = Int64(fraction) ?? 0
        output.writeIfSet(FieldNumber.Protobuf.Duration.seconds, int64: isNegative ? -seconds : seconds)
        output.writeIfSet(FieldNumber.Protobuf.Duration.nanos, int64: isNegative ? -nanoseconds : nanoseconds)
        return true
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
