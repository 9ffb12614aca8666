internal import Basics
internal import DocumentModel

extension IndexShape {
    /// A name for the index that follows from its definition: 16 hexadecimal digits. An index that is dropped and
    /// declared again has the same.
    package var identifier: String {
        var writer = ByteBuffer(capacity: 64)
        append(to: &writer)
        // FNV-1a.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in writer.copyBytes() { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
