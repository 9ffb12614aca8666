// The statement about the leases of several stores, and reads of groups in parts.

import Replication
import Storage
import TestSupport
import Testing

@testable import PostgreSQLLog

@Suite(.serialized, .timeLimit(.minutes(20)))
struct LeaseRowsTests {
    private let server: PostgreSQLServer
    private let session: PostgreSQLSession

    init() throws {
        server = try PostgreSQLServer()
        session = try PostgreSQLSession(address: server.address)
    }

    private func tables(_ name: String) -> StoreTables { StoreTables(name: name, advertised: "test:1") }

    /// Executes a statement about rows. By the name of the store: whether the lease was claimed, and the row.
    private func rows(_ statements: [(tables: StoreTables, statement: LeaseStatement)]) throws -> [String: StoreRow] {
        var found: [String: StoreRow] = [:]
        for row in try session.run(StoreTables.rows(statements)) {
            let name = row.text(StoreTables.rowsNameColumn)
            expectNil(found[name])
            found[name] = StoreRow([SQLRow(columns: Array(row.columns.prefix(StoreTables.rowsNameColumn)))])
        }
        return found
    }

    @Test
    func `The epoch that is known is that of the lease, also after a failover that has lost an epoch`() throws {
        let (own, other) = (ServerIdentity(high: 1, low: 1), ServerIdentity(high: 2, low: 2))
        let store = StoreIdentity.random()
        var member = StoreMember(server: own, timing: LeaseTiming(), proposed: store, store: store)
        let state = MemberState()
        var now: UInt64 = 0
        func answer(_ epoch: UInt64, _ renewals: UInt64, _ holder: ServerIdentity, isDone: Bool) {
            now += 3_000
            _ = member.tick(now: now, wallMicroseconds: 1)
            let row = LeaseRow(store: store, epoch: Epoch(epoch), renewals: renewals, holder: holder, ceiling: 0)
            _ = member.receive(LeaseReply(row: row, isDone: isDone), now: now)
            state.update(member)
        }
        answer(8, 1, other, isDone: false)
        answer(9, 2, own, isDone: true)
        expectEqual(state.figures.epoch, 9)
        // The standby that has taken over lacks the last two epochs.
        answer(7, 1, other, isDone: false)
        answer(7, 1, other, isDone: false)
        answer(8, 2, own, isDone: true)
        expectEqual(state.figures.epoch, 8)
    }

    @Test
    func `Leases of several stores are claimed at once, except those that have changed or are locked`() throws {
        let names = ["a", "b", "c", "d"]
        let identities = try names.map { try makeStore(server, $0) }
        let observed = try rows(names.map { (tables($0), .observe) } + [(tables("missing"), .observe)])
        expectEqual(observed.count, 4)
        for (name, identity) in zip(names, identities) {
            let row = try #require(observed[name])
            expect(row.lease.store == identity && row.lease.epoch == Epoch(1) && row.timeline == 7 && !row.isDone)
        }
        // Identities have any bits.
        let holder = ServerIdentity(high: .max - 5, low: 1 << 63)
        func claim(_ renewals: UInt64) -> LeaseStatement { .claim(Epoch(1), renewals: renewals, holder: holder) }
        let locking = try PostgreSQLSession(address: server.address)
        defer { locking.close() }
        try locking.run(SQLStatement("BEGIN"))
        try locking.run(SQLStatement("SELECT FROM hearth.stores WHERE name = 'c' FOR SHARE"))
        let statements = [
            (tables: tables("a"), statement: claim(1)), (tables("b"), claim(9)), (tables("c"), claim(1)),
            (tables("d"), .observe),
        ]
        let claimed = try rows(statements)
        expectEqual(claimed.count, 4)
        let row = try #require(claimed["a"])
        expect(row.isDone && row.lease.epoch == Epoch(2) && row.lease.holder == holder && row.address == "test:1")
        for name in ["b", "c", "d"] {
            let row = try #require(claimed[name])
            expect(!row.isDone && row.lease == observed[name]?.lease && row.address.isEmpty)
        }
        try locking.run(SQLStatement("ROLLBACK"))
        let again = try rows(statements)
        expect(again["c"]?.isDone == true && again["a"]?.isDone == false && again["a"]?.lease == row.lease)
    }

    @Test
    func `A read ends with the row that has enough bytes, and the row to compare with counts nothing`() throws {
        let store = try makeStore(server)
        let tables = tables("main")
        try session.run(tables.creation(of: 1, in: Epoch(1)))
        var place = LogPlace.start
        var places: [LogPlace] = []
        for size in [900, 400, 400, 400, 10] {
            let records = [UInt8](repeating: 7, count: size)
            let header = GroupHeader(
                store: store, epoch: Epoch(1), after: place, version: place.version + 1,
                contentHash: LoggedGroup.contentHash(records))
            var text = AppendText()
            let group = LoggedGroup(header: header, records: records, derived: [1])
            try #require(tables.appendReply(try session.run(tables.append(group, &text))) == .appended)
            place = header.place
            places.append(place)
        }
        func read(after sequence: UInt64, rowsMax: Int, bytesMax: Int) throws -> LogRows {
            var rows = LogRows()
            let statement = tables.read(
                table: 0, from: max(sequence, 1), skipsFirst: sequence > 0, rowsMax: rowsMax, bytesMax: bytesMax)
            let after = sequence == 0 ? LogPlace.start : places[Int(sequence) - 1]
            let found = try session.run(statement)
            expectNil(rows.add(found, after: after, store: store, rowsMax: rowsMax, bytesMax: bytesMax))
            return rows
        }
        func sequences(_ rows: LogRows) -> [UInt64] { rows.groups.map(\.header.sequence) }
        let all = try read(after: 0, rowsMax: 128, bytesMax: .max)
        expect(sequences(all) == [1, 2, 3, 4, 5] && !all.isCut && all.groups[0].derived == [1])
        // They have so many bytes.
        try expect(read(after: 0, rowsMax: 128, bytesMax: 2_110).isCut)
        try expect(!read(after: 0, rowsMax: 128, bytesMax: 2_111).isCut)
        expectEqual(sequences(try read(after: 0, rowsMax: 128, bytesMax: 900)), [1])
        expectEqual(sequences(try read(after: 0, rowsMax: 128, bytesMax: 901)), [1, 2])
        let rest = try read(after: 1, rowsMax: 128, bytesMax: 700)
        expect(sequences(rest) == [2, 3] && rest.placeHash == places[0].hash && rest.isCut)
        expectEqual(sequences(try read(after: 1, rowsMax: 3, bytesMax: .max)), [2, 3])
        expectEqual(sequences(try read(after: 5, rowsMax: 128, bytesMax: 1)), [])
    }
}
