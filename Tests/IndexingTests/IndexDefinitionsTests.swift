import Basics
import DocumentModel
import TestSupport
import Testing

@testable import Indexing

@Suite(.timeLimit(.minutes(20))) struct IndexDefinitionsTests {
    /// What a reader of all definitions would find.
    private func expectSame(_ definitions: IndexDefinitions, _ model: [DeclaredIndex], _ place: String) {
        let all = model.sorted { ($0.database, $0.number) < ($1.database, $1.number) }
        expectEqual(definitions.all, all, "\(place)")
        expectEqual(definitions.isEmpty, all.isEmpty, "\(place)")
        expectEqual(definitions.searches, all.filter { $0.shape.search != nil }, "\(place)")
        expectEqual(Array(definitions.working), all.filter(\.state.hasWork), "\(place)")
        for database in UInt32(1)...3 {
            let ofDatabase = all.filter { $0.database == database }
            expectEqual(Array(definitions.indexes(in: database)), ofDatabase, "\(place), database \(database)")
            for number in UInt64(1)...13 {
                let expected = ofDatabase.first { $0.number == number }
                expectEqual(definitions.index(number, in: database), expected, "\(place), \(database), \(number)")
            }
            for id in ["a", "b", "ab", "é", ""] {
                let found = definitions.indexes(of: Array(id.utf8).byteSpan, in: database)
                let expected = all.filter { $0.database == database && $0.shape.collectionID == id }
                expectEqual(found, expected, "\(place), database \(database), \(id)")
            }
        }
    }

    @Test(arguments: UInt64(1)..<9)
    func `Indexes are found by their collection group, whatever was declared, changed and dropped`(
        seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed)
        var definitions = IndexDefinitions()
        var model: [DeclaredIndex] = []
        for round in 0..<300 {
            let database = UInt32(1 + random.below(3))
            let number = UInt64(1 + random.below(12))
            let known = model.first { $0.database == database && $0.number == number }
            let field = try FieldPath("f\(random.below(3))")
            let isForSearches = random.oneIn(4)
            // A number stays with its index.
            let index =
                known
                ?? DeclaredIndex(
                    number: number, database: database,
                    shape: IndexShape(
                        collectionID: random.pick(["a", "b", "ab", "é"]),
                        isGroup: random.oneIn(2),
                        parts: isForSearches ? [] : [IndexShape.Part(field: field, kind: .ascending)],
                        search: isForSearches ? IndexShape.SearchPart(texts: [field], language: .english) : nil),
                    state: IndexState(phase: .building))
            model.removeAll { $0.database == database && $0.number == number }
            if random.oneIn(3) {
                definitions.set(index, nil)
            } else {
                var changed = index
                changed.state = IndexState(phase: random.oneIn(2) ? .complete : .clearing)
                definitions.set(index, changed.state)
                model.append(changed)
            }
            expectSame(definitions, model, "seed \(seed), round \(round)")
        }
    }

    @Test
    func `A change costs what its database declares, also while a reader has the state before it`() throws {
        // A copy of all definitions for each change would be a thousand million copies.
        let (databases, each) = (300, 100)
        let shape = IndexShape(
            collectionID: "c", isGroup: true,
            parts: [IndexShape.Part(field: try FieldPath("f"), kind: .ascending)])
        var definitions = IndexDefinitions()
        var readers: [IndexDefinitions] = []
        for number in 1...(databases * each) {
            let index = DeclaredIndex(
                number: UInt64(number), database: UInt32(number % databases), shape: shape,
                state: IndexState(phase: .building))
            definitions.set(index, index.state)
            readers = [definitions]
        }
        expectEqual(definitions.highestNumber, UInt64(databases * each))
        while let index = definitions.working.first(where: { _ in true }) {
            definitions.set(index, IndexState(phase: .complete))
            readers = [definitions]
        }
        expect(readers[0].all.count == databases * each && !readers[0].haveWork)
    }
}
