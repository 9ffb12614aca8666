// Reads of many documents about which rules decide: a loop serves others between the decisions.

import DocumentModel
import FirestoreMessages
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct JudgedReadTests {
    private static let paths = (0..<5).map { "c/\($0)" }

    private static func request(_ consistency: ReadConsistency) -> BatchGetDocumentsRequest {
        BatchGetDocumentsRequest(
            database: Harness.database, documents: paths.map(Harness.name), consistency: consistency)
    }

    @Test(arguments: [
        (ReadConsistency.latest, 1),
        // Before the locks are taken, and in the state that is read.
        (.newTransaction(.readWrite(retryTransaction: [], concurrency: .pessimistic)), 2),
    ])
    func `A batch of documents is judged in steps`(consistency: ReadConsistency, times: Int) throws {
        let control = SlowAccessControl(.batchGetDocuments)
        let harness = try Harness(accessControl: control)
        let answer = harness.call(.batchGetDocuments, Self.request(consistency))
        expect(answer.isOK && answer.messages.count == Self.paths.count, "\(answer.text)")
        let turns = try #require(control.access?.turns)
        expectEqual(turns.count, times * Self.paths.count)
        expectEqual(Set(turns).count, turns.count)
    }

    @Test(arguments: [
        ReadConsistency.latest, .newTransaction(.readWrite(retryTransaction: [], concurrency: .pessimistic)),
        .newTransaction(.readWrite),
    ])
    func `Nothing of a batch is sent before all of it is permitted`(consistency: ReadConsistency) throws {
        let control = SlowAccessControl(.batchGetDocuments, denying: "c/4")
        let harness = try Harness(accessControl: control)
        let answer = harness.call(.batchGetDocuments, Self.request(consistency))
        expect(answer.status == .permissionDenied && answer.messages.isEmpty)
        expectEqual(control.access?.turns.count, Self.paths.count)
        expectEqual(harness.store.statistics.transactionsOpen, 0)
    }
}
