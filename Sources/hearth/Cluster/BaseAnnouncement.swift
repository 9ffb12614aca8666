// The announcement of a base that is being received: the servers of the store keep the base meanwhile.

import PostgreSQLLog

/// Says that a server, or `hearth migrate`, receives a base, and how far it is. Used by one thread.
struct BaseAnnouncement {
    private let base: BaseRow
    private let tables: StoreTables
    private let session: PostgreSQLSession
    private var announced = BootClock.milliseconds()

    private static let intervalMilliseconds: UInt64 = 1_000

    /// Announces that nothing is received yet.
    /// - Parameter tables: with the address under which it is announced.
    init(_ base: BaseRow, _ tables: StoreTables, _ session: PostgreSQLSession) {
        self.base = base
        self.tables = tables
        self.session = session
        announce(0)
    }

    private func announce(_ byteCount: Int) {
        var figures = MemberState.Figures()
        let percent = min(UInt64(byteCount) * 100 / max(base.byteCount, 1), 100)
        figures.role = StoreTables.fetchingRole(base.number, percent: percent)
        // Only what people read is missing if this fails, and a base that is replaced twice meanwhile.
        _ = try? session.run(tables.announcement(figures, version: CommandRouter.version))
    }

    /// So many bytes were received.
    /// - Returns: whether that was announced: once a second.
    mutating func note(_ byteCount: Int) -> Bool {
        let now = BootClock.milliseconds()
        guard now >= announced + Self.intervalMilliseconds else { return false }
        announced = now
        announce(byteCount)
        return true
    }

    /// The base was received, and the log after it is being read.
    mutating func noteComplete() { _ = note(Int(clamping: base.byteCount)) }

    /// What was announced under an address that no server has goes.
    func end() { _ = try? session.run(tables.endingAnnouncement) }
}
