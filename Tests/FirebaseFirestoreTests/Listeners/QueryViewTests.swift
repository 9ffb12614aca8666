// The order of a query's results and the indexes of its changes, against a plain sort.

import DocumentModel
import Foundation
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite("The results of a query that is listened to", .timeLimit(.minutes(20)))
struct QueryViewTests {
    private let firestore = TestFirestore.detached()

    private func document(_ number: Int, _ version: Int) -> StoredDocument {
        var writer = WireWriter()
        writer.withLengthPrefix(field: 2) { entry in
            entry.appendField(1, string: "n")
            entry.withLengthPrefix(field: 2) { Value.integer(Int64(number)).encode(into: &$0) }
        }
        let time = TimestampValue(seconds: Int64(version), nanoseconds: 0)
        return StoredDocument(fields: writer.copyBytes(), createTime: time, updateTime: time)
    }

    private func name(_ id: Int) -> String { "\(firestore.documentsRoot)/c/d\(id)" }

    @Test("Changes applied one after the other give the results", arguments: [false, true])
    func changes(isDescending: Bool) throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let query = firestore.collection("c").order(by: "n", descending: isDescending)
        var view = QueryView(query)
        var model: [Int: Int] = [:]
        var replayed: [QueryDocumentSnapshot] = []
        for version in 0..<200 {
            var changes: [String: StoredDocument?] = [:]
            for _ in 0..<generator.below(6) {
                let (id, number) = (generator.below(12), generator.below(5))
                let isDeleted = generator.oneIn(3)
                changes[name(id)] = isDeleted ? .some(nil) : document(number, version)
                model[id] = isDeleted ? nil : number
            }
            for change in view.apply(changes) {
                if change.oldIndex != UInt(NSNotFound) {
                    let removed = replayed.remove(at: Int(change.oldIndex))
                    #expect(removed.documentID == change.document.documentID)
                }
                if change.newIndex != UInt(NSNotFound) { replayed.insert(change.document, at: Int(change.newIndex)) }
            }
            let ids = model.sorted { left, right in
                let isBefore = left.value == right.value ? "d\(left.key)" < "d\(right.key)" : left.value < right.value
                return isDescending ? !isBefore : isBefore
            }.map { "d\($0.key)" }
            #expect(view.documents.map(\.documentID) == ids, "seed \(seed)")
            #expect(replayed.map(\.documentID) == ids, "seed \(seed)")
        }
    }

    @Test("Removed, then added, then modified documents, each in the query's order")
    func order() {
        var view = QueryView(firestore.collection("c").order(by: "n"))
        let first = view.apply([name(1): document(1, 1), name(2): document(2, 1), name(3): document(3, 1)])
        #expect(first.map(\.newIndex) == [0, 1, 2])
        let changes: [String: StoredDocument?] = [
            name(3): document(0, 2), name(1): StoredDocument?.none, name(5): document(9, 2), name(4): document(8, 2),
        ]
        let next = view.apply(changes)
        #expect(next.map(\.type) == [.removed, .added, .added, .modified])
        #expect(next.map(\.document.documentID) == ["d1", "d4", "d5", "d3"])
        #expect(next.map(\.oldIndex) == [0, UInt(NSNotFound), UInt(NSNotFound), 1])
        #expect(next.map(\.newIndex) == [UInt(NSNotFound), 2, 3, 0])
    }
}
