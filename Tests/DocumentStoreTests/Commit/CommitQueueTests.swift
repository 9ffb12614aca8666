// The queue in front of the commit thread: order, bounds, waking, and the claim of a lone client.

import Basics
import DocumentModel
import Foundation
import StoreTestSupport
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20))) struct CommitQueueTests {
    private func release(_ number: UInt64) -> QueuedRequest { .release(number) }

    private func numbers(_ requests: [QueuedRequest]) -> [UInt64] {
        requests.map { if case .release(let number) = $0 { number } else { 0 } }
    }

    private func queue(requests: Int = 10, bytes: Int = 1 << 20) -> CommitQueue {
        CommitQueue(requestsMax: requests, bytesMax: bytes)
    }

    @Test
    func `Everything queued is taken at once, in order; nothing is left`() {
        let queue = queue()
        for number in 1...3 { expectNil(queue.submit(release(UInt64(number)))) }
        queue.submitRelease(4)
        expectEqual(queue.load.requests, 4)
        var taken: [QueuedRequest] = []
        expect(queue.take(into: &taken, waitMilliseconds: 1_000))
        expectEqual(numbers(taken), [1, 2, 3, 4])
        expectEqual(queue.load.requests, 0)
        expectEqual(queue.load.bytes, 0)
        taken = []
        expect(queue.take(into: &taken, waitMilliseconds: 0))
        expect(taken.isEmpty)
    }

    @Test
    func `Requests and bytes are bounded; a release is never refused, and one request may be larger than the bound`() {
        let few = queue(requests: 2)
        expectNil(few.submit(release(1)))
        expectNil(few.submit(release(2)))
        expectEqual(few.submit(release(3))?.code, .resourceExhausted)
        few.submitRelease(4)
        expectEqual(few.load.requests, 3)
        let small = queue(bytes: release(1).byteCount - 1)
        expectNil(small.submit(release(1)))
        expectEqual(small.submit(release(2))?.code, .resourceExhausted)
    }

    @Test
    func `A closed queue refuses requests; what is queued is still taken`() {
        let queue = queue()
        expectNil(queue.submit(release(1)))
        queue.close()
        expectEqual(queue.submit(release(2))?.code, RequestError.shuttingDown.code)
        var taken: [QueuedRequest] = []
        expect(queue.take(into: &taken, waitMilliseconds: 1_000))
        expectEqual(numbers(taken), [1])
        taken = []
        expect(!queue.take(into: &taken, waitMilliseconds: 1_000))
        expect(!queue.claim())
    }

    /// A consumer on its own thread that takes until the queue is closed.
    private final class Consumer: Sendable {
        let rounds = Mutex<[[QueuedRequest]]>([])
        let finished = DispatchSemaphore(value: 0)

        init(_ queue: CommitQueue, waitMilliseconds: Int) {
            Thread.detachNewThread { [self] in
                var taken: [QueuedRequest] = []
                while queue.take(into: &taken, waitMilliseconds: waitMilliseconds) {
                    rounds.withLock { $0.append(taken) }
                    taken = []
                }
                finished.signal()
            }
        }

        var count: Int { rounds.withLock(\.count) }
    }

    @Test
    func `A waiting consumer is woken by a request and by a call, and returns when the time is over`() throws {
        let queue = queue()
        let patient = Consumer(queue, waitMilliseconds: 3_600_000)
        try waitUntil("the consumer waits") { queue.claim() }
        queue.release()
        queue.wake()
        try waitUntil("the nudge is noticed") { patient.count == 1 }
        expectNil(queue.submit(release(7)))
        try waitUntil("the request is taken") { patient.count == 2 }
        expectEqual(numbers(patient.rounds.withLock(\.self)[1]), [7])
        queue.close()
        try patient.finished.wait(until: "the consumer ends")
        let other = self.queue()
        let failFast = Consumer(other, waitMilliseconds: 1)
        try waitUntil("rounds without work") { failFast.count > 2 }
        other.close()
        try failFast.finished.wait(until: "the consumer ends")
    }

    @Test(arguments: [1, 3_600_000])
    func `While its place is claimed the consumer takes nothing, also when its time is over`(waitMilliseconds: Int)
        throws
    {
        let queue = queue()
        expect(!queue.claim(), "nobody waits yet")
        let consumer = Consumer(queue, waitMilliseconds: waitMilliseconds)
        try waitUntil("the consumer waits") { queue.claim() }
        expect(!queue.claim())
        let before = consumer.count
        expectNil(queue.submit(release(1)))
        queue.wake()
        usleep(5_000)
        expectEqual(consumer.count, before)
        queue.release()
        try waitUntil("the request is taken") {
            consumer.rounds.withLock { rounds in rounds.contains { !$0.isEmpty } }
        }
        queue.close()
        try consumer.finished.wait(until: "the consumer ends")
    }
}
