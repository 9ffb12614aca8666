// Records of the log on their way from a leader to a follower.

internal import Basics
package import Storage

/// Records of a leader, in the order of their versions.
package struct FollowedRecords: Sendable {
    private var entries: [(version: CommitVersion, end: Int)] = []
    private(set) var bytes: [UInt8] = []

    package init() {}

    package var isEmpty: Bool { entries.isEmpty }
    package var count: Int { entries.count }
    /// Bytes of the records.
    package var byteCount: Int { bytes.count }
    /// The version of the last record; nil without one.
    package var lastVersion: CommitVersion? { entries.last?.version }

    /// Adds a record.
    /// - Parameter version: above that of the record before.
    package mutating func append(_ record: RawSpan, version: CommitVersion) {
        bytes.append(contentsOf: record)
        entries.append((version, bytes.count))
    }

    /// Adds records as they are sent and kept in a shared log: version (8 bytes, little-endian), length (4 bytes),
    /// bytes.
    /// - Returns: false, and some are added, if the bytes are not such records with increasing versions.
    package mutating func append(logged bytes: [UInt8]) -> Bool {
        var offset = 0
        func number(_ count: Int) -> UInt64 {
            bytes[offset..<offset + count].littleEndianNumber
        }
        while offset < bytes.count {
            guard bytes.count - offset >= 12 else { return false }
            let version = number(8)
            offset += 8
            let length = Int(number(4))
            offset += 4
            guard bytes.count - offset >= length, version > lastVersion?.microseconds ?? 0 else { return false }
            append(bytes.byteSpan.extracting(offset..<offset + length), version: CommitVersion(microseconds: version))
            offset += length
        }
        return true
    }

    /// Lends each record, in order.
    package func lendEach<Failure: Error>(
        _ body: (CommitVersion, RawSpan) throws(Failure) -> Void
    ) throws(Failure) {
        let bytes = bytes
        let span = bytes.byteSpan
        var start = 0
        for entry in entries {
            try body(entry.version, span.extracting(start..<entry.end))
            start = entry.end
        }
    }
}
