package import Basics
import DocumentModel

/// A `google.firestore.v1.BloomFilter`: the names of the documents that match a target, as a server sends them.
///
/// A name is in the set when all its bits are set: bits `(h1 + i * h2) mod 2^64 mod m` for `i < hashCount`, where `m`
/// is the number of bits, and `h1` and `h2` are the halves of the MD5 hash of the name as little-endian integers.
package struct BloomFilter: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.BloomFilter
    private typealias Bits = FieldNumber.BitSequence

    /// Bit n is `bitmap[n / 8] & (1 << n % 8)`.
    package var bitmap: [UInt8]
    /// Bits at the end of the bitmap that are not used, 0 to 7.
    package var padding: Int32
    /// Bits for each name.
    package var hashCount: Int32

    package init(bitmap: [UInt8] = [], padding: Int32 = 0, hashCount: Int32 = 0) {
        self.bitmap = bitmap
        self.padding = padding
        self.hashCount = hashCount
    }

    package init(wire: RawSpan) throws {
        self.init()
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.bits:
                var bits = try reader.message(tag)
                while let tag = try bits.nextTag() {
                    switch tag.fieldNumber {
                    case Bits.bitmap: bitmap = try bits.byteArray(tag)
                    case Bits.padding: padding = try bits.int32(tag)
                    default: try bits.skip(tag)
                    }
                }
            case Field.hashCount: hashCount = try reader.int32(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: Field.bits) { bits in
            bits.writeIfSet(Bits.bitmap, bytes: bitmap)
            bits.writeIfSet(Bits.padding, int64: Int64(padding))
        }
        writer.writeIfSet(Field.hashCount, int64: Int64(hashCount))
    }
}
