// Which tables of the log a base makes superfluous, while an archive may lack what they have.

import Storage
import TestSupport
import Testing

@testable import PostgreSQLLog
@testable import hearth

@Suite(.serialized, .timeLimit(.minutes(20)))
struct BaseMakerTests {
    private let tables = StoreTables(name: "main", advertised: "test:1")
    private let server: PostgreSQLServer
    private let session: PostgreSQLSession

    /// Four tables. Each has its first group, whose version is ten times its sequence.
    init() throws {
        server = try PostgreSQLServer()
        session = try PostgreSQLSession(address: server.address)
        try session.run(StoreTables.creation)
        try session.run(tables.adoption(.random(), timeline: 1, ceiling: 0))
        for number: UInt64 in 0..<4 {
            let sequence = Self.firstGroup(number)
            try session.run(tables.creation(of: sequence))
            try session.run(
                SQLStatement(
                    """
                    INSERT INTO \(tables.table(number))
                    VALUES ($1::bigint, 0, 1, 1, 0, $2::bigint, 0, 7, decode(repeat('00', 4096), 'hex'))
                    """, [.number(sequence), .number(10 * sequence)]))
        }
    }

    private static func firstGroup(_ table: UInt64) -> UInt64 { table * StoreTables.groupsPerTable + 1 }

    /// The tables that are dropped after a base with the first group of the last table.
    private func dropped(archivedThrough version: UInt64?, bytesMax: Int = 1 << 30) throws -> [String] {
        let hold = version.map { (version: CommitVersion(microseconds: $0), bytesMax: bytesMax) }
        let last = try BaseMaker.lastSuperfluous(base: Self.firstGroup(3), hold: hold, tables, session)
        return try session.run(tables.superfluousTables(for: last)).map { $0.text(0) }.sorted()
    }

    @Test
    func `The log is kept for what an archive lacks, and no longer than its bound`() throws {
        #expect(try dropped(archivedThrough: nil) == ["log_main_0", "log_main_1"])
        // All groups are archived.
        #expect(try dropped(archivedThrough: 10 * Self.firstGroup(3)) == ["log_main_0", "log_main_1"])
        #expect(try dropped(archivedThrough: UInt64(Int64.max)) == ["log_main_0", "log_main_1"])
        // The archive lacks the first group of the last table.
        #expect(try dropped(archivedThrough: 10 * Self.firstGroup(3) - 1) == ["log_main_0"])
        #expect(try dropped(archivedThrough: 10 * Self.firstGroup(1)) == [])
        // A server that has not opened the archive yet keeps everything.
        #expect(try dropped(archivedThrough: 0) == [])
        // The log that the archive lacks is larger than what may be kept for it.
        #expect(try dropped(archivedThrough: 10 * Self.firstGroup(1), bytesMax: 4_096) == ["log_main_0", "log_main_1"])
    }

    @Test
    func `An archive that lacks groups which were dropped holds the rest of the log`() throws {
        try session.run(StoreTables.dropping(tables.table(0)))
        #expect(try dropped(archivedThrough: 0) == [])
        #expect(try dropped(archivedThrough: nil) == ["log_main_1"])
    }
}
