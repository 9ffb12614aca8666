// The ledger of unacknowledged writes.

import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct PendingWritesTests {
    @Test
    func `The bytes of unacknowledged writes are bounded, but one write always fits`() {
        let writes = PendingWrites(bytesMax: 100)
        expect(writes.begin(byteCount: 1000))
        expect(!writes.begin(byteCount: 1) && writes.count == 1)
        writes.finish(byteCount: 1000)
        expect(writes.begin(byteCount: 60))
        expect(!writes.begin(byteCount: 60))
        writes.finish(byteCount: 60)
        expectEqual(writes.count, 0)
    }
}
