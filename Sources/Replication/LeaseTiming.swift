/// The times of a lease, in milliseconds. All servers of a store have the same.
package struct LeaseTiming: Hashable, Sendable {
    /// How long the holder counts on the lease after it began to renew it, and how long a candidate sees an unchanged
    /// row before it takes over.
    package let leaseMilliseconds: UInt64
    /// Time between two renewals, and between two looks at the row.
    package let intervalMilliseconds: UInt64
    /// Time between two looks at the log of a server that does not lead.
    package let readMilliseconds: UInt64
    /// How long the log is not read after the last message of the leader's stream.
    package let streamMilliseconds: UInt64
    /// How much longer than the lease a candidate waits: for clocks that do not run at the same pace.
    package let marginMilliseconds: UInt64
    /// How far above the clock a renewal raises the ceiling, in microseconds.
    package let ceilingMicroseconds: UInt64

    package init(
        leaseMilliseconds: UInt64 = 2_000, intervalMilliseconds: UInt64 = 500, marginMilliseconds: UInt64 = 200,
        ceilingMicroseconds: UInt64 = 60_000_000, readMilliseconds: UInt64? = nil,
        streamMilliseconds: UInt64 = 0
    ) {
        self.leaseMilliseconds = leaseMilliseconds
        self.intervalMilliseconds = intervalMilliseconds
        self.readMilliseconds = readMilliseconds ?? intervalMilliseconds
        self.streamMilliseconds = streamMilliseconds
        self.marginMilliseconds = marginMilliseconds
        self.ceilingMicroseconds = ceilingMicroseconds
    }
}
