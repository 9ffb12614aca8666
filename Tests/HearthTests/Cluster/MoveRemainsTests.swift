// What is removed of moves that are over, and when.

import Replication
import TestSupport
import Testing

@testable import DocumentStore
@testable import hearth

@Suite(.timeLimit(.minutes(5)))
struct MoveRemainsTests {
    private let here = DatabaseRow(store: "a", generation: 4)
    private let away = DatabaseRow(store: "b", generation: 3)

    private func remains(
        _ state: DatabaseTenure.State, _ generation: UInt64, _ row: DatabaseRow, isCopyLeft: Bool = true,
        after microseconds: UInt64 = 0
    ) -> MoveRemains? {
        var tenure = DatabaseTenure(state, generation: generation)
        (tenure.version, tenure.isCopyLeft) = (1_000, isCopyLeft)
        return MoveRemains(tenure, in: "a", row, nowMicroseconds: 1_000 + microseconds)
    }

    @Test
    func `What was received goes when the row is of another move, and stays while it is of this one`() {
        let moving = DatabaseRow(store: "b", movingTo: "a", generation: 3)
        expectNil(remains(.receiving, 3, moving))
        expectEqual(remains(.receiving, 2, moving), .received)
        expectEqual(remains(.receiving, 3, DatabaseRow(store: "b", generation: 4)), .received)
        expectEqual(remains(.receiving, 3, DatabaseRow(store: "b", movingTo: "c", generation: 4)), .received)
    }

    @Test
    func `The copy of a database that has moved goes after an hour`() {
        let hour = MoveRemains.copyMicroseconds
        expectNil(remains(.released, 3, away, after: hour - 1))
        expectEqual(remains(.released, 3, away, after: hour), .copy)
        expectNil(remains(.released, 3, away, isCopyLeft: false, after: hour))
        // The move is not over, or the database is on its way back.
        expectNil(remains(.released, 4, here, after: hour))
        expectNil(remains(.released, 3, DatabaseRow(store: "b", movingTo: "a", generation: 4), after: hour))
    }

    @Test
    func `Nothing goes of a database that is owned or was discarded`() {
        for state in [DatabaseTenure.State.absent, .owned, .discarded] {
            expectNil(remains(state, 3, away, after: .max / 2))
        }
    }
}
