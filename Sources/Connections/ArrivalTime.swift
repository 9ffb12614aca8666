// How long a message may take to arrive.

/// The time for something that has begun to arrive and is not complete.
///
/// It counts from the first byte. Nothing that arrives besides, such as a PING, prolongs it; only the bytes of the
/// message itself do, so that a large message over a slow line is not cut off while one that trickles is.
package enum ArrivalTime {
    /// Bytes of a message that prolong its time by a millisecond: 16 KB in a second.
    private static let bytesPerMillisecond: UInt64 = 16

    /// Whether the time is over.
    ///
    /// - Parameters:
    ///   - since: when the first byte came, in monotonic milliseconds, as `now`.
    ///   - bytes: those of the message that have come.
    ///   - limit: the time in milliseconds without any bytes.
    package static func isOver(since: UInt64, bytes: Int, now: UInt64, limit: UInt64) -> Bool {
        now - since >= limit + UInt64(bytes) / bytesPerMillisecond
    }
}
