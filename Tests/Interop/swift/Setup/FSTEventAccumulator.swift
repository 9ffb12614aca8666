// Collects the snapshots of a listener.

import FirebaseFirestore
import XCTest

/// A snapshot of a document or a query, where the SDK's accumulator has a value of the type `id`.
protocol Snapshot: AnyObject {
    var ownMetadata: SnapshotMetadata { get }
}
extension DocumentSnapshot: Snapshot {
    var ownMetadata: SnapshotMetadata { metadata }
}
extension QuerySnapshot: Snapshot {
    var ownMetadata: SnapshotMetadata { metadata }
}
extension Snapshot {
    /// As Swift gives a property of an `id`: it may be missing.
    var metadata: SnapshotMetadata! { ownMetadata }
}

/// Thread-safe where a listener calls it: all listeners of the tests are called on the main queue.
final class FSTEventAccumulator<Event> {
    private unowned let test: XCTestCase
    private var events: [Event?] = []
    private var taken = 0
    private var rejectsEvents = false
    private var expectation: XCTestExpectation?

    init(forTest test: XCTestCase) { self.test = test }

    var valueEventHandler: (Event?, (any Error)?) -> Void {
        { [self] event, _ in
            XCTAssertFalse(rejectsEvents, "Unexpected event: \(String(describing: event))")
            events.append(event)
            fulfill()
        }
    }

    /// The next snapshot.
    func awaitEvent(withName name: String) -> Event {
        expectation = test.expectation(description: name)
        taken += 1
        fulfill()
        test.awaitExpectations()
        return events[taken - 1]!
    }

    /// A later event fails the test.
    func assertNoAdditionalEvents() { rejectsEvents = true }

    private func fulfill() {
        guard events.count >= taken else { return }
        expectation?.fulfill()
        expectation = nil
    }
}
