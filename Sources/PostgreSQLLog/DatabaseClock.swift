/// The clock of a database, by which the time of a leader is bounded. A plain value.
struct DatabaseClock {
    /// Microseconds since 1970, as the database had them.
    let microseconds: UInt64
    /// When that was seen here, in milliseconds of ``BootClock``.
    let takenAt: UInt64

    /// How far a machine's clock may be from the database's for a server to lead, in microseconds.
    static let differenceMax: UInt64 = 10_000_000

    /// The latest time that counts as one of a right clock, in microseconds since 1970. A machine's clock may have
    /// jumped since the database was asked; the elapsed time does not.
    func latestTime(at now: UInt64) -> UInt64 {
        // A clock before 1970 is a number of all bits.
        min(microseconds, UInt64(Int64.max)) + (max(now, takenAt) - takenAt) * 1_000 + Self.differenceMax
    }
}
