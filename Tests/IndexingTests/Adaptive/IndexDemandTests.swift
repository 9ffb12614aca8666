// When indexes are made and dropped: the policy alone, with times that the test gives.

import DocumentModel
import TestSupport
import Testing

@testable import Indexing

@Suite(.timeLimit(.minutes(20)))
struct IndexDemandTests {
    private static func index(_ field: String, of group: String = "c", in database: UInt32 = 1) throws -> AdaptiveIndex
    {
        AdaptiveIndex(database: database, collectionID: group, field: try FieldPath(field), kind: .values)
    }

    private static var settings: AdaptiveIndexSettings {
        var settings = AdaptiveIndexSettings()
        settings.documentsDemanded = 1_000
        settings.unusedMilliseconds = 80_000_000
        settings.indexesPerGroupMax = 3
        settings.indexesPerDatabaseMax = 4
        return settings
    }

    /// An inventory of ready indexes with the times of their last use.
    private static func inventory(_ entries: [(AdaptiveIndex, UInt64)]) -> IndexInventory {
        var inventory = IndexInventory()
        inventory.entries = entries.map { IndexInventory.Entry($0.0, lastUse: $0.1, isReady: true) }
        return inventory
    }

    private static let start: UInt64 = 1_000_000
    private var demand = IndexDemand(Self.settings, now: Self.start)

    private mutating func changes(_ inventory: IndexInventory = IndexInventory(), at now: UInt64) -> [IndexChange] {
        demand.changes(inventory, now: now) { _ in true }
    }

    @Test
    mutating func `An index is made when the documents read without a match add up to the bound, once`() throws {
        let age = try Self.index("age")
        demand.noteScan(lacking: age, documents: 600, of: 0, now: Self.start)
        expect(changes(at: Self.start).isEmpty)
        expect(demand.demand(for: age, now: Self.start) == (600, 1_000))
        demand.noteScan(lacking: age, documents: 400, of: 0, now: Self.start)
        expectEqual(changes(at: Self.start), [.make(age, lastUse: Self.start)])
        expect(changes(at: Self.start).isEmpty)
    }

    @Test
    mutating func `A large collection needs half as many documents read as it has`() throws {
        let age = try Self.index("age")
        demand.noteScan(lacking: age, documents: 4_000, of: 10_000, now: Self.start)
        expect(changes(at: Self.start).isEmpty)
        demand.noteScan(lacking: age, documents: 1_000, of: 10_000, now: Self.start)
        expectEqual(changes(at: Self.start), [.make(age, lastUse: Self.start)])
    }

    @Test
    mutating func `Demand halves every hour, and is forgotten`() throws {
        let age = try Self.index("age")
        demand.noteScan(lacking: age, documents: 900, of: 0, now: Self.start)
        expectEqual(demand.demand(for: age, now: Self.start + 1_800).documents, 675)
        expectEqual(demand.demand(for: age, now: Self.start + 3_600).documents, 450)
        expectEqual(demand.demand(for: age, now: Self.start + 7_200).documents, 225)
        for hours in [64, 65, 300] as [UInt64] {
            expectEqual(demand.demand(for: age, now: Self.start + hours * 3_600).documents, 0)
        }
        // A clock that was set back changes nothing.
        expectEqual(demand.demand(for: age, now: 0).documents, 900)
        demand.noteScan(lacking: age, documents: 700, of: 0, now: Self.start + 3_600)
        expectEqual(changes(at: Self.start + 3_600), [.make(age, lastUse: Self.start + 3_600)])
    }

    @Test
    mutating func `All due indexes of one group are made together; other groups wait until it is done`() throws {
        let (a, b, other) = (try Self.index("a"), try Self.index("b"), try Self.index("a", of: "d"))
        demand.noteScan(lacking: other, documents: 1_500, of: 0, now: Self.start)
        demand.noteScan(lacking: a, documents: 2_000, of: 0, now: Self.start)
        demand.noteScan(lacking: b, documents: 1_000, of: 0, now: Self.start)
        expectEqual(changes(at: Self.start), [.make(a, lastUse: Self.start), .make(b, lastUse: Self.start)])
        var busy = Self.inventory([])
        busy.entries = [a, b].map { IndexInventory.Entry($0, lastUse: Self.start, isReady: false) }
        busy.isBusy = true
        expect(changes(busy, at: Self.start + 1).isEmpty)
        let done = Self.inventory([(a, Self.start), (b, Self.start)])
        expectEqual(changes(done, at: Self.start + 2), [.make(other, lastUse: Self.start + 2)])
    }

    @Test
    mutating func `A field that a declaration decides about is not asked for again`() throws {
        let age = try Self.index("age")
        demand.noteScan(lacking: age, documents: 5_000, of: 0, now: Self.start)
        expect(demand.changes(IndexInventory(), now: Self.start) { _ in false }.isEmpty)
        expectEqual(demand.demand(for: age, now: Self.start).documents, 0)
    }

    @Test
    mutating func `A full group or database takes no more, until an index was not used for an hour`() throws {
        let existing = try ["a", "b", "c"].map { try Self.index($0) }
        let full = Self.inventory([
            (existing[0], Self.start), (existing[1], Self.start - 10), (existing[2], Self.start),
        ])
        let more = try Self.index("more")
        demand.noteScan(lacking: more, documents: 100_000, of: 0, now: Self.start)
        expect(changes(full, at: Self.start + 3_000).isEmpty)
        expectEqual(changes(full, at: Self.start + 3_600), [.drop(existing[1])])
        // Another group of the database has one place left.
        let (x, y) = (try Self.index("x", of: "d"), try Self.index("y", of: "d"))
        var fresh = IndexDemand(Self.settings, now: Self.start)
        fresh.noteScan(lacking: x, documents: 3_000, of: 0, now: Self.start)
        fresh.noteScan(lacking: y, documents: 2_000, of: 0, now: Self.start)
        expectEqual(fresh.changes(full, now: Self.start) { _ in true }, [.make(x, lastUse: Self.start)])
    }

    @Test
    mutating func `What is unused for long enough is dropped; a use keeps it`() throws {
        let (a, b) = (try Self.index("a"), try Self.index("b"))
        let inventory = Self.inventory([(a, Self.start), (b, Self.start)])
        expect(changes(inventory, at: Self.start + 79_999).isEmpty)
        demand.noteUse(of: b, now: Self.start + 50)
        expectEqual(changes(inventory, at: Self.start + 80_000), [.drop(a)])
    }

    @Test
    mutating func `After a start nothing is dropped until queries had an hour to use it`() throws {
        let a = try Self.index("a")
        let old = Self.inventory([(a, Self.start - 1_000_000)])
        expect(changes(old, at: Self.start + 3_599).isEmpty)
        expectEqual(changes(old, at: Self.start + 3_600), [.drop(a)])
        var used = IndexDemand(Self.settings, now: Self.start)
        used.noteUse(of: a, now: Self.start + 60)
        expectEqual(used.changes(old, now: Self.start + 60) { _ in true }, [.touch(a, lastUse: Self.start + 60)])
        let stored = Self.inventory([(a, Self.start + 60)])
        expect(used.changes(stored, now: Self.start + 3_600) { _ in true }.isEmpty)
    }

    @Test
    mutating func `Uses are stored together, when one of them is an hour younger than what is stored`() throws {
        let (a, b) = (try Self.index("a"), try Self.index("b"))
        let inventory = Self.inventory([(a, Self.start), (b, Self.start + 3_000)])
        for second in 1..<3_600 as Range<UInt64> {
            demand.noteUse(of: a, now: Self.start + second)
            expect(changes(inventory, at: Self.start + second).isEmpty)
        }
        demand.noteUse(of: b, now: Self.start + 3_500)
        demand.noteUse(of: a, now: Self.start + 3_600)
        expectEqual(
            Set(changes(inventory, at: Self.start + 3_600)),
            [.touch(a, lastUse: Self.start + 3_600), .touch(b, lastUse: Self.start + 3_500)])
    }

    @Test
    mutating func `While all fields have entries nothing is made; those that were used stay when the others go`() throws
    {
        let (a, b) = (try Self.index("a"), try Self.index("b"))
        var inventory = IndexInventory()
        inventory.allKeptSince = Self.start
        demand.noteScan(lacking: b, documents: 100_000, of: 0, now: Self.start)
        demand.noteUse(of: a, now: Self.start + 10)
        expectEqual(changes(inventory, at: Self.start + 10), [.touch(a, lastUse: Self.start + 10)])
        inventory.entries = [IndexInventory.Entry(a, lastUse: Self.start + 10, isReady: true)]
        expect(changes(inventory, at: Self.start + 79_999).isEmpty)
        expectEqual(changes(inventory, at: Self.start + 80_000), [.dropOthers(unusedSince: Self.start)])
    }

    @Test
    mutating func `Demands are bounded: small ones are forgotten for larger ones, and uses of what does not exist too`()
        throws
    {
        for number in 0..<5_000 {
            demand.noteScan(lacking: try Self.index("f\(number)"), documents: 10 + number % 7, of: 0, now: Self.start)
            demand.noteUse(of: try Self.index("f\(number)"), now: Self.start)
        }
        let needed = try Self.index("needed")
        demand.noteScan(lacking: needed, documents: 1_000, of: 0, now: Self.start)
        expectEqual(changes(at: Self.start), [.make(needed, lastUse: Self.start)])
        let remembered = try (0..<5_000).count {
            demand.demand(for: try Self.index("f\($0)"), now: Self.start).documents > 0
        }
        expectEqual(remembered, IndexDemand.unmetDemandsMax - 1)
    }
}
