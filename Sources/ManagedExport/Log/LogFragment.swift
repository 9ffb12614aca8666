// The format of LevelDB logs. Never change: other programs read and write it.
//
// A log is a sequence of blocks of 32,768 bytes. A block is a sequence of fragments:
//
//     +----------------------+-------------+----------+-------------+
//     | masked CRC-32C (4)   | length (2)  | type (1) | data        |     numbers are little endian
//     +----------------------+-------------+----------+-------------+
//
// The checksum covers the type and the data. A record is one fragment of type 1, or one of type 2, any number of type 3
// and one of type 4. The last bytes of a block that have no room for a header are zero.

/// The numbers of the format.
package enum LogFragment {
    package static let blockBytes = 32_768
    package static let headerBytes = 7

    /// The place of a fragment in its record.
    enum Kind: UInt8 {
        case full = 1
        case first
        case middle
        case last

        var beginsRecord: Bool { self == .full || self == .first }
        var endsRecord: Bool { self == .full || self == .last }
    }

    /// Bytes of a record. A document of 1 MiB can have a larger entity, because each element of an array repeats the
    /// name of its field. The limit bounds the memory of a reader.
    package static let recordBytesMax = 256 << 20
}

/// What is wrong with a log, and where. The records before it are intact.
package struct LogDamage: Error, Equatable, CustomStringConvertible {
    /// The rule that is broken.
    package enum Reason: Equatable, Sendable {
        case checksum
        case kind(UInt8)
        case length
        /// A record begins before the one before it ends, or continues without a beginning.
        case order
        case truncated
        case recordTooLong
        /// The file cannot be read.
        case unreadable(String)
    }

    package let reason: Reason
    /// Bytes from the start of the file.
    package let offset: Int

    package init(_ reason: Reason, offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    package var description: String {
        let text =
            switch reason {
            case .checksum: "the checksum does not match"
            case .kind(let kind): "\(kind) is not a type of fragment"
            case .length: "the fragment is longer than its block"
            case .order: "the fragments are not in order"
            case .truncated: "the file ends in the middle of a record"
            case .recordTooLong: "the record has more than \(LogFragment.recordBytesMax >> 20) MiB"
            case .unreadable(let problem): "the file cannot be read: \(problem)"
            }
        return "\(text) (at byte \(offset))"
    }
}
