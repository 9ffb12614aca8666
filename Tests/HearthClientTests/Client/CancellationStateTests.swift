// What joins calls with the cancellation of a task.

import HearthClient
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct CancellationStateTests {
    @Test
    func `What is added late, of a part that has ended, does not displace what cancels the present part`() {
        let cancellation = Cancellation()
        let cancelled = Mutex<[String]>([])
        // The first call ends, and the second one begins on another thread, before the first one's thread gets here.
        cancellation.onCancel { cancelled.withLock { $0.append("second") } }
        cancellation.onCancel { cancelled.withLock { $0.append("first") } }
        cancellation.cancel()
        expect(cancelled.withLock { $0.contains("second") })
    }

    @Test
    func `After the cancellation an action runs at once, and each runs once`() {
        let cancellation = Cancellation()
        let count = Mutex(0)
        cancellation.onCancel { count.withLock { $0 += 1 } }
        cancellation.cancel()
        cancellation.cancel()
        cancellation.onCancel { count.withLock { $0 += 1 } }
        expect(cancellation.isCancelled && count.withLock { $0 } == 2)
    }
}
