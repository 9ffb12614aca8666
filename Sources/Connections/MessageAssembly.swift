// A message that arrives in several frames, until its last part is here.

/// The parts of one message so far.
package struct MessageAssembly {
    package private(set) var bytes: [UInt8] = []
    /// Whether a part has come and its successor must.
    package private(set) var isActive = false
    /// When the first part came, in monotonic milliseconds.
    package private(set) var since: UInt64 = 0

    package init() {}

    /// - Parameter now: monotonic milliseconds.
    package mutating func append(_ part: RawSpan, at now: UInt64) {
        if !isActive { since = now }
        isActive = true
        unsafe part.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
    }

    /// Whether the message should have been complete by now.
    package func isLate(now: UInt64, limit: UInt64) -> Bool {
        isActive && ArrivalTime.isOver(since: since, bytes: bytes.count, now: now, limit: limit)
    }

    /// Hands the whole message out and starts over.
    package mutating func take() -> [UInt8] {
        isActive = false
        let whole = bytes
        bytes = []
        return whole
    }
}
