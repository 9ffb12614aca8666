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
        let logged = bytes.byteSpan
        self.bytes.reserveCapacity(self.bytes.count + logged.byteCount)
        var offset = 0
        var last = lastVersion?.microseconds ?? 0
        while offset < logged.byteCount {
            guard logged.byteCount - offset >= 12 else { return false }
            let version = logged.littleEndian64(at: offset)
            let length = Int(logged.littleEndian32(at: offset + 8))
            offset += 12
            guard logged.byteCount - offset >= length, version > last else { return false }
            append(logged.extracting(offset..<offset + length), version: CommitVersion(microseconds: version))
            last = version
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
