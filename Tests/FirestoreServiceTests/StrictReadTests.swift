// Strict reads at a follower: what is read was acknowledged by the server that takes the writes.

import Basics
import Calls
import DocumentModel
import DocumentStore
import EngineTestSupport
import FirestoreMessages
import FirestoreService
import MemoryEngine
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct StrictReadTests {
    /// A server that answers at once, and forwards nothing.
    private final class AnsweringLeader: CallForwarder {
        private(set) var questions = 0

        let isNeeded = true
        let readsAreStrict = true

        func forward(
            _ call: Call, _ method: FirestoreMessages.Method, _ request: RawSpan, isInTransaction: Bool
        ) throws(RequestError) {
            throw RequestError(.internal, "No call of the test is forwarded.")
        }

        func whenNewest(
            _ call: Call, isListener: Bool, _ completion: @escaping (Result<Void, RequestError>) -> Void
        ) {
            questions += 1
            completion(.success(()))
        }
    }

    @Test
    func `A strict read that has waited for storage is strict when it is made`() throws {
        let coldKeys = HeldColdKeys(containing: "cold")
        let harness = try Harness {
            $0.volume = MemoryVolume(replaysRecords: true)
            $0.engine.coldKeys = coldKeys
        }
        try harness.set(["c/cold": Harness.fields(["n": .integer(1)])])
        let leader = AnsweringLeader()
        harness.service.forwarder = leader
        coldKeys.hold()
        let read = TestCall(loop: harness.loop, method: .getDocument)
        harness.service.begin(read, GetDocumentRequest(name: Harness.name("c/cold")).encodedBytes())
        expectEqual(leader.questions, 1)
        try coldKeys.waitUntilReached()
        // A commit is read from the log that the leader has not acknowledged yet.
        let later = harness.store.publishedVersion.microseconds + 1
        harness.store.replication.noteReadBeforeLeader(through: later)
        coldKeys.release()
        expect(harness.loop.run { read.answer.status != nil })
        expectEqual(read.answer.status, .unavailable)
        expectEqual(leader.questions, 2)
        harness.store.replication.noteAcknowledged(through: later)
        try expect(harness.get("c/cold") != nil)
    }
}
