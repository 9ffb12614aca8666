// A read over the connection that members share, whose reply comes when its member has claimed the lease.

import Basics
import Replication
import Storage
import TestSupport
import Testing

@testable import PostgreSQLLog

@Suite(.timeLimit(.minutes(20)))
struct SharedReadTests {
    private let store = StoreIdentity.random()
    private let host = RecordingHost()
    private let directory = TemporaryDirectory("shared-read")

    /// A row of the log with a group of one piece, as the database has it.
    private func row(_ header: GroupHeader, _ records: [UInt8]) -> SQLRow {
        func bytes(_ number: UInt64) -> [UInt8] {
            stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> UInt64($0)) }
        }
        let numbers: [UInt64] = [
            0, header.sequence, 0, 1, header.epoch.number, header.previousHash, header.version, header.contentHash,
            header.hash,
        ]
        return SQLRow(columns: numbers.map { bytes($0) } + [records, [], bytes(1)])
    }

    @Test
    func `It is not applied, since no commit after it has waited for the standby`() throws {
        let tables = StoreTables(name: "main", advertised: "second:2")
        let driver = MemberDriver(
            MemberSettings(
                loop: MemberLoop(database: ""), tables: tables, timing: MemberSettings.timing, store: store,
                place: .start),
            places: try LogPlaces(directory: directory.path), host: host)
        let other = ServerIdentity(high: 0, low: 1)
        var lease = LeaseRow(store: store, epoch: Epoch(1), renewals: 1, holder: other, ceiling: 0)
        func tick(at now: UInt64, isDone: Bool) {
            _ = driver.member.tick(now: now, wallMicroseconds: 0)
            _ = driver.member.receive(LeaseReply(row: lease, isDone: isDone), now: now)
        }
        tick(at: 0, isDone: false)
        // What tick has asked for is under way.
        driver.logStatement = .read(after: .start)
        driver.reading = LogReading(after: .start, table: 0, rowsMax: StoreTables.rowsReadMax)
        driver.readsShared = true
        (lease.epoch, lease.renewals, lease.holder) = (Epoch(2), 2, driver.member.server)
        tick(at: 10_000, isDone: true)
        try #require(driver.member.role == .catchingUp)

        let records = TestMember.group("one", version: 1)
        let header = GroupHeader(
            store: store, epoch: Epoch(1), after: .start, version: 1, contentHash: LoggedGroup.contentHash(records))
        driver.takeSharedLog(.rows([row(header, records)], hasWarning: false))
        expect(host.state.groups.isEmpty && host.state.restarts.isEmpty)
        expect(driver.logStatement == nil && driver.member.place == .start)
        expectEqual(driver.member.role, .catchingUp)
    }
}
