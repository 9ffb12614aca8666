// The bounded table of indexes that queries lacked.

import DocumentModel
import DocumentStore
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct WantedIndexesTests {
    private let database: DatabaseName
    private let other: DatabaseName

    init() throws {
        database = try DatabaseName(project: "p")
        other = try DatabaseName(project: "q")
    }

    @Test func `Entries are counted by database, those with the most documents first`() {
        let table = WantedIndexes()
        table.note("a", in: database, documents: 5)
        table.note("b", in: database, documents: 4)
        table.note("b", in: database, documents: 4)
        table.note("b", in: other, documents: 100)
        let found = table.all(in: database)
        expectEqual(found.map(\.json), ["b", "a"])
        expect(found.map(\.queries) == [2, 1] && found.map(\.documents) == [8, 5])
        expectEqual(table.all(in: other).map(\.documents), [100])
    }

    @Test func `A full table gives up the entry with the fewest documents, and long entries are not kept`() {
        let table = WantedIndexes()
        for number in 1...WantedIndexes.entriesMax { table.note("\(number)", in: database, documents: number) }
        table.note("new", in: other, documents: 0)
        expectEqual(table.all(in: database).count, WantedIndexes.entriesMax - 1)
        expectEqual(table.all(in: database).last?.json, "2")
        table.note(String(repeating: "x", count: WantedIndexes.entryBytesMax + 1), in: other, documents: 9)
        expectEqual(table.all(in: other).map(\.json), ["new"])
    }
}
