import PostgreSQLLog
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20)))
struct StoreRowTests {
    @Test
    func `The history of a new store begins by the clock of the database, and versions are above its start`() throws {
        let server = try PostgreSQLServer()
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        let row = try Cluster.storeRow(session, StoreTables(name: "main", advertised: "first:1"))
        expect(row.timeline > 0 && row.timeline <= row.clock)
        // The first leader begins above the ceiling.
        expectEqual(row.lease.ceiling, row.timeline)
        try expectEqual(Cluster.storeRow(session, StoreTables(name: "main", advertised: "second:2")).lease, row.lease)
    }
}
