// A message that arrives in several frames, until its last part is here.

/// The parts of one message so far.
struct MessageAssembly {
    private(set) var bytes: [UInt8] = []
    /// Whether a part has come and its successor must.
    private(set) var isActive = false
    /// When the first part came, in monotonic milliseconds.
    private(set) var since: UInt64 = 0

    /// - Parameter now: monotonic milliseconds.
    mutating func append(_ part: RawSpan, at now: UInt64) {
        if !isActive { since = now }
        isActive = true
        unsafe part.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
    }

    /// Whether the message should have been complete by now.
    func isLate(now: UInt64, limit: UInt64) -> Bool {
        isActive && ArrivalTime.isOver(since: since, bytes: bytes.count, now: now, limit: limit)
    }

    /// Hands the whole message out and starts over.
    mutating func take() -> [UInt8] {
        isActive = false
        let whole = bytes
        bytes = []
        return whole
    }
}

/// Where the bytes of a message that is complete stand.
enum MessageBytes: Equatable {
    /// In the frame just received, from this offset of its payload to the end.
    case inFrame(from: Int)
    /// In the session's `assembled`, because they came in parts.
    case assembled
}
