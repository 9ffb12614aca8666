// Which tables of the log a base makes superfluous, while an archive may lack what they have.

import Replication
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
            try session.run(tables.creation(of: sequence, in: Epoch(1)))
            try add(sequence, to: number)
        }
    }

    /// Adds a group of 4,096 bytes to a table.
    private func add(_ sequence: UInt64, to table: UInt64) throws {
        try session.run(
            SQLStatement(
                """
                INSERT INTO \(tables.table(table))
                VALUES ($1::bigint, 0, 1, 1, 0, $2::bigint, 0, 7, decode(repeat('00', 4096), 'hex'))
                """, [.number(sequence), .number(10 * sequence)]))
    }

    private static func firstGroup(_ table: UInt64) -> UInt64 { table * StoreTables.groupsPerTable + 1 }

    /// The tables that are dropped after a base with the first group of the last table.
    private func dropped(
        archivedThrough version: UInt64?, bytesMax: Int = 1 << 30, readersBytesMax: UInt64 = 1 << 30
    ) throws -> [String] {
        let hold = version.map { (version: CommitVersion(microseconds: $0), bytesMax: bytesMax) }
        let last = try BaseMaker.lastSuperfluous(
            base: Self.firstGroup(3), hold: hold, readersBytesMax: readersBytesMax, tables, session)
        if try session.run(tables.lastBase).isEmpty { try expect(enter(9, .folder("last"))) }
        return try superfluous(for: last)
    }

    private func superfluous(for last: UInt64) throws -> [String] {
        let base = try #require(BaseRow(try session.run(tables.lastBase)))
        let statement = tables.superfluousTables(for: last, lastBase: base, keptMilliseconds: 0)
        return try session.run(statement).map { $0.text(0) }.sorted()
    }

    @Test
    func `The log is kept for what an archive lacks, and no longer than its bound`() throws {
        try expectEqual(dropped(archivedThrough: nil), ["log_main_0", "log_main_1"])
        // All groups are archived.
        try expectEqual(dropped(archivedThrough: 10 * Self.firstGroup(3)), ["log_main_0", "log_main_1"])
        try expectEqual(dropped(archivedThrough: UInt64(Int64.max)), ["log_main_0", "log_main_1"])
        // The archive lacks the first group of the last table.
        try expectEqual(dropped(archivedThrough: 10 * Self.firstGroup(3) - 1), ["log_main_0"])
        try expectEqual(dropped(archivedThrough: 10 * Self.firstGroup(1)), [])
        // A server that has not opened the archive yet keeps everything.
        try expectEqual(dropped(archivedThrough: 0), [])
        // The log that the archive lacks is larger than what may be kept for it.
        try expectEqual(
            dropped(archivedThrough: 10 * Self.firstGroup(1), bytesMax: 4_096), ["log_main_0", "log_main_1"])
    }

    @Test
    func `An archive that lacks groups which were dropped holds the rest of the log`() throws {
        try session.run(StoreTables.dropping(tables.table(0)))
        try expectEqual(dropped(archivedThrough: 0), [])
        try expectEqual(dropped(archivedThrough: nil), ["log_main_1"])
    }

    /// Has a server say what it does.
    private func announce(_ address: String, _ role: String, sequence: UInt64) throws {
        var figures = MemberState.Figures()
        figures.role = role
        figures.place = LogPlace(sequence: sequence, hash: 7, version: 10 * sequence)
        try session.run(StoreTables(name: "main", advertised: address).announcement(figures, version: "1"))
    }

    @Test
    func `The log is kept for servers that read it or receive a base, no longer than its bound`() throws {
        try announce("leader:1", "leading", sequence: Self.firstGroup(3) + 5)
        try expectEqual(dropped(archivedThrough: nil), ["log_main_0", "log_main_1"])
        try announce("slow:1", "following", sequence: Self.firstGroup(2))
        try expectEqual(dropped(archivedThrough: nil), ["log_main_0"])
        try expectEqual(dropped(archivedThrough: 10 * Self.firstGroup(1)), [])
        try expectEqual(dropped(archivedThrough: nil, readersBytesMax: 4_096), ["log_main_0", "log_main_1"])
        // It has nothing yet, and will read what comes after the base.
        try expect(enter(1, .folder("one")))
        try announce("new:1", StoreTables.fetchingRole(1, percent: 3), sequence: 0)
        try expectEqual(dropped(archivedThrough: nil), [])
        // They have not been seen for long.
        try session.run(
            SQLStatement("UPDATE hearth.servers SET seen = seen - interval '2 minutes' WHERE address <> 'leader:1'"))
        try expectEqual(dropped(archivedThrough: nil), ["log_main_0", "log_main_1"])
    }

    // MARK: Bases

    /// Enters a base.
    /// - Parameter sequence: of its last group; nil: the first one of the table of its number, or of the last table.
    private func enter(
        _ number: UInt64, _ location: BaseLocation, epoch: UInt64 = 1, sequence: UInt64? = nil, hash: UInt64 = 7
    ) throws -> Bool {
        let place = LogPlace(sequence: sequence ?? Self.firstGroup(min(number, 3)), hash: hash, version: 2)
        let row = BaseRow(number: number, place: place, byteCount: 3, location: location, parts: 4)
        return try !session.run(tables.entering(row, epoch: epoch)).isEmpty
    }

    private func kept(_ milliseconds: UInt64 = 0) throws -> [UInt64] {
        try BaseRow.all(session.run(tables.keptBases(forMilliseconds: milliseconds))).map(\.number)
    }

    /// Three bases in the places that servers with different settings have chosen.
    private func enterThree() throws {
        for (number, location) in [
            (1, BaseLocation.table("hearth.base_main_1_7")), (2, .folder("one")), (3, .table("hearth.base_main_3_7")),
        ] as [(UInt64, BaseLocation)] {
            if case .table(let table) = location { try session.run(StoreTables.creation(ofBase: table)) }
            try expect(enter(number, location))
        }
    }

    @Test
    func `A base is entered in the last epoch alone, and says where it lies`() throws {
        try expect(!enter(1, .folder("late"), epoch: 0))
        try expect(session.run(tables.lastBase).isEmpty)
        try enterThree()
        let last = try #require(BaseRow(try session.run(tables.lastBase)))
        expect(last.location == .table("hearth.base_main_3_7") && last.parts == 4)
        expectEqual(last.place.sequence, Self.firstGroup(3))
        expectEqual(
            BaseRow.all(try session.run(tables.keptBases(forMilliseconds: 0))).map(\.location.folder), [nil, "one"])
    }

    @Test
    func `A base is entered only if the log has its last group`() throws {
        // A standby has taken over that lacks the group, or has another one.
        try expect(!enter(1, .folder("lost"), sequence: Self.firstGroup(1) + 1))
        try expect(!enter(1, .folder("other"), hash: 8))
        #expect(throws: SQLFailure.self) { try enter(1, .folder("table"), sequence: Self.firstGroup(4)) }
        try expect(session.run(tables.lastBase).isEmpty)
        try expect(enter(1, .folder("sound")))
        // Before the first group there is none.
        let row = BaseRow(number: 2, place: .start, byteCount: 3, location: .folder("empty"), parts: 4)
        try expect(!session.run(tables.entering(row, epoch: 1)).isEmpty)
    }

    @Test
    func `A base whose entry had no answer is entered once, and another one does not take its number`() throws {
        try expect(enter(1, .folder("one")))
        try expect(enter(1, .folder("one")))
        // This server leads no longer.
        try expect(enter(1, .folder("one"), epoch: 0))
        try expect(!enter(1, .folder("two")))
        try expectEqual(session.run(SQLStatement("SELECT count(*) FROM hearth.bases")).first?.number(0), 1)
    }

    @Test
    func `The last two bases are kept, those replaced lately, and one from which a server starts`() throws {
        try enterThree()
        try expectEqual(kept(), [3, 2])
        try expectEqual(kept(3_600_000), [3, 2, 1])
        var figures = MemberState.Figures()
        figures.role = StoreTables.fetchingRole(1, percent: 40)
        try session.run(tables.announcement(figures, version: "1"))
        try expectEqual(kept(), [3, 2, 1])
        // It has not been seen for long.
        try session.run(SQLStatement("UPDATE hearth.servers SET seen = seen - interval '2 minutes'"))
        try expectEqual(kept(), [3, 2])
    }

    @Test
    func `Tables of bases that are not kept go, and not those of a maker that is still writing`() throws {
        try enterThree()
        try session.run(StoreTables.creation(ofBase: "hearth.base_main_3_8"))
        try session.run(StoreTables.creation(ofBase: "hearth.base_main_4_9"))
        try expectEqual(superfluous(for: 1), ["base_main_1_7", "base_main_3_8"])
    }

    @Test
    func `Nothing is dropped for a base that the database does not have any more`() throws {
        try enterThree()
        let base = try #require(BaseRow(try session.run(tables.lastBase)))
        let statement = tables.superfluousTables(for: Self.firstGroup(3), lastBase: base, keptMilliseconds: 0)
        try expectEqual(session.run(statement).count, 3)
        // A standby that lacks the row has taken over, and another server has made a base with the number.
        try session.run(SQLStatement("DELETE FROM hearth.bases WHERE number = 3"))
        try expect(session.run(statement).isEmpty)
        try expect(enter(3, .folder("other"), sequence: Self.firstGroup(2)))
        try expect(session.run(statement).isEmpty)
    }

    @Test
    func `A damaged base is used by nobody, and the next one has another number`() throws {
        try enterThree()
        try session.run(tables.markingDamaged(3))
        expectEqual(BaseRow(try session.run(tables.lastBase))?.number, 2)
        try session.run(tables.markingDamaged(2))
        try session.run(tables.markingDamaged(2))
        try expectEqual(kept(), [1])
        try expectEqual(session.run(tables.damagedFolders).map { $0.text(0) }, ["one"])
        try expectEqual(session.run(tables.baseCount).first?.number(0), 3)
        try expect(enter(4, .folder("two")))
        try expectEqual(kept(), [4, 1])
    }

    @Test
    func `Another base is due at once if the log does not continue the last one that is sound`() throws {
        let bases = StoreBases(tables, directory: nil, of: .random())
        func isDue() throws -> Bool { try BaseMaker.isDue(bases, bytesMin: 1 << 30, session) }
        try expect(enter(1, .folder("one")))
        try expect(enter(3, .folder("three")))
        try expect(!isDue())
        for table in try superfluous(for: Self.firstGroup(3)) {
            try session.run(StoreTables.dropping("hearth." + table))
        }
        try expect(!isDue())
        try session.run(tables.markingDamaged(3))
        try expect(isDue())
        try expect(enter(4, .folder("four")))
        try expect(!isDue())
    }

    @Test
    func `Another base is due if the log has grown since the last one, however large the table of its group is`() throws
    {
        let bases = StoreBases(tables, directory: nil, of: .random())
        func isDue() throws -> Bool { try BaseMaker.isDue(bases, bytesMin: 8_192, session) }
        try expect(isDue())
        try expect(enter(9, .folder("nine")))
        try expect(session.run(tables.logBytes(after: Self.firstGroup(3))).first?.number(0) ?? 0 > 8_192)
        try expect(!isDue())
        try add(Self.firstGroup(3) + 1, to: 3)
        try expect(isDue())
    }

    @Test
    func `A base is continued by a log that begins before its next group`() throws {
        func isContinued(_ sequence: UInt64) throws -> Bool {
            try LogPresence.continues(after: LogPlace(sequence: sequence, hash: 0, version: 0), tables, session)
        }
        try expect(isContinued(0))
        try session.run(StoreTables.dropping(tables.table(0)))
        try expect(!isContinued(0))
        try expect(!isContinued(Self.firstGroup(1) - 2))
        try expect(isContinued(Self.firstGroup(1) - 1))
        try expect(isContinued(Self.firstGroup(9)))
    }

    @Test
    func `A state is given up only if a base could be used, or the log has everything`() throws {
        let directory = TemporaryDirectory("bases")
        func unusableReason(knowsDirectory: Bool) throws -> String? {
            let bases = StoreBases(
                tables, directory: knowsDirectory ? directory.path : nil, of: StoreIdentity(high: 1, low: 2))
            return try BaseStart(bases: bases, session: session, log: .standardError(level: .error)).unusableReason()
        }
        try expectNil(unusableReason(knowsDirectory: false))
        try expect(enter(1, .folder("one"), sequence: 1))
        try expectNil(unusableReason(knowsDirectory: false))
        try session.run(StoreTables.dropping(tables.table(0)))
        // The log does not continue the base any more.
        try expectEqual(unusableReason(knowsDirectory: true)?.contains("does not continue any base"), true)
        try session.run(
            SQLStatement("UPDATE hearth.bases SET sequence = $1::bigint", [.number(Self.firstGroup(2))]))
        try expectEqual(unusableReason(knowsDirectory: false)?.contains("name it with --cluster-bases"), true)
        try expectEqual(unusableReason(knowsDirectory: true)?.contains("has no file BASES"), true)
        try session.run(StoreTables.creation(ofBase: "hearth.base_main_2_7"))
        try expect(enter(2, .table("hearth.base_main_2_7")))
        try session.run(
            SQLStatement(
                "UPDATE hearth.bases SET sequence = $1::bigint WHERE number = 2", [.number(Self.firstGroup(3))]))
        try expectNil(unusableReason(knowsDirectory: false))
    }
}
