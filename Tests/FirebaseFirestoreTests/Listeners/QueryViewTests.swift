// The order of a query's results and the indexes of its changes, against a plain sort.

import Basics
import ClientCache
import DocumentModel
import Foundation
import HearthClient
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20)))
struct QueryViewTests {
    private let firestore = TestFirestore.detached()

    private func document(_ number: Int, _ version: Int) -> VisibleDocument {
        var writer = ByteBuffer()
        writer.withLengthPrefix(field: 2) { entry in
            entry.appendField(1, string: "n")
            entry.withLengthPrefix(field: 2) { Value.integer(Int64(number)).encode(into: &$0) }
        }
        let time = TimestampValue(seconds: Int64(version), nanoseconds: 0)
        return VisibleDocument(StoredDocument(fields: writer.copyBytes(), createTime: time, updateTime: time))
    }

    private func name(_ id: Int) -> UTF8Text { "\(firestore.documentsRoot)/c/d\(id)" }

    @Test(arguments: [false, true])
    func `Changes applied one after the other give the results`(isDescending: Bool) throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let query = firestore.collection("c").order(by: "n", descending: isDescending)
        var view = QueryView(orders: query.definition.effectiveOrders)
        var model: [Int: Int] = [:]
        var replayed: [String] = []
        for version in 0..<200 {
            var changes: [UTF8Text: VisibleDocument?] = [:]
            for _ in 0..<generator.below(6) {
                let (id, number) = (generator.below(12), generator.below(5))
                let isDeleted = generator.oneIn(3)
                changes[name(id)] = isDeleted ? .some(nil) : document(number, version)
                model[id] = isDeleted ? nil : number
            }
            for change in view.apply(changes) {
                if let oldIndex = change.oldIndex { expectEqual(replayed.remove(at: oldIndex), change.row.id) }
                if let newIndex = change.newIndex { replayed.insert(change.row.id, at: newIndex) }
            }
            let ids = model.sorted { left, right in
                let isBefore = left.value == right.value ? "d\(left.key)" < "d\(right.key)" : left.value < right.value
                return isDescending ? !isBefore : isBefore
            }.map { "d\($0.key)" }
            expectEqual(view.rows.map(\.id), ids, "seed \(seed)")
            expectEqual(replayed, ids, "seed \(seed)")
        }
    }

    @Test
    func `Removed, then added, then modified documents, each in the query's order`() {
        var view = QueryView(orders: firestore.collection("c").order(by: "n").definition.effectiveOrders)
        let first = view.apply([name(1): document(1, 1), name(2): document(2, 1), name(3): document(3, 1)])
        expectEqual(first.map(\.newIndex), [0, 1, 2])
        let changes: [UTF8Text: VisibleDocument?] = [
            name(3): document(0, 2), name(1): VisibleDocument?.none, name(5): document(9, 2), name(4): document(8, 2),
        ]
        let next = view.apply(changes)
        expectEqual(next.map(\.type), [.removed, .added, .added, .modified])
        expectEqual(next.map(\.row.id), ["d1", "d4", "d5", "d3"])
        expectEqual(next.map(\.oldIndex), [0, nil, nil, 1])
        expectEqual(next.map(\.newIndex), [nil, 2, 3, 0])
    }

    @Test
    func `A document of which only the pending writes change is a change of metadata; an equal one is none`() {
        var view = QueryView(orders: firestore.collection("c").order(by: "n").definition.effectiveOrders)
        var pending = document(1, 1)
        pending.hasPendingWrites = true
        expectEqual(view.apply([name(1): pending]).map(\.type), [.added])
        expect(view.hasPendingWrites)
        let acknowledged = view.apply([name(1): document(1, 2)])
        expectEqual(acknowledged.map(\.isMetadata), [true])
        expect(!view.hasPendingWrites)
        expect(view.apply([name(1): document(1, 3)]).isEmpty)
        expectEqual(view.document(name(1))?.updateTime.seconds, 3)
        expectEqual(view.apply([name(1): document(2, 4)]).map(\.isMetadata), [false])
    }

    @Test
    func `A pending server timestamp whose value before it has changed looks the same, and reads the new value`() {
        var view = QueryView(orders: firestore.collection("c").definition.effectiveOrders)
        var pending = document(1, 1)
        pending.hasPendingWrites = true
        pending.estimates = [PendingTimestamp(path: DocumentModel.FieldPath(fieldName: "n"), previous: nil)]
        expectEqual(view.apply([name(1): pending]).map(\.type), [.added])
        // The server has sent the write, and not acknowledged it.
        pending.estimates[0].previous = EncodedValue(.integer(7))
        expect(view.apply([name(1): pending]).isEmpty)
        expectEqual(view.document(name(1))?.estimates.map(\.previous), [EncodedValue(.integer(7))])
        pending.estimates = []
        expectEqual(view.apply([name(1): pending]).map(\.isMetadata), [false])
    }

    @Test
    func `Documents whose ids are the same text in other bytes are different rows, in the order of their bytes`() {
        var view = QueryView(orders: firestore.collection("c").definition.effectiveOrders)
        let names = ["\u{e9}", "f", "e\u{301}"].map { UTF8Text("\(firestore.documentsRoot)/c/\($0)") }
        _ = view.apply([names[0]: document(1, 1), names[1]: document(2, 1), names[2]: document(3, 1)])
        expectEqual(view.rows.map { Array($0.name.utf8) }, [2, 1, 0].map { Array(names[$0].string.utf8) })
        expectEqual(view.apply([names[0]: document(4, 2)]).map(\.type), [.modified])
        expectEqual(view.apply([names[2]: VisibleDocument?.none]).map(\.oldIndex), [0])
        expectEqual(view.count, 2)
    }
}

extension SnapshotRow {
    /// The id of the document.
    fileprivate var id: String { String(name.split(separator: "/").last ?? "") }
}
