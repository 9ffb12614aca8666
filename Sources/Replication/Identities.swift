// Who and where: servers, epochs, and places in a log. The identity of a store is that of its data directory.

/// The identity of a server process, drawn at random at each start: a process that was started again is another one.
package struct ServerIdentity: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }
}

/// The number of a time during which one server leads a store. It increases with each take-over, and whenever a leader
/// must lock out its own earlier appends.
package struct Epoch: Hashable, Comparable, Sendable {
    package let number: UInt64

    package init(_ number: UInt64) { self.number = number }

    package static func < (left: Epoch, right: Epoch) -> Bool { left.number < right.number }

    package var next: Epoch { Epoch(number + 1) }
}

/// The end of what a server has of a log: a group, and the chain of hashes up to it.
package struct LogPlace: Hashable, Sendable {
    /// Of the group; 0 before the first.
    package let sequence: UInt64
    /// Stands for the contents of all groups up to it.
    package let hash: UInt64
    /// The last commit version of the group, in microseconds.
    package let version: UInt64

    package init(sequence: UInt64, hash: UInt64, version: UInt64) {
        self.sequence = sequence
        self.hash = hash
        self.version = version
    }

    /// The place before the first group.
    package static let start = LogPlace(sequence: 0, hash: 0, version: 0)
}
