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
