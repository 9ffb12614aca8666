import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20)))
struct WorkQueueTests {
    /// What has run, and whether two things ran at a time.
    private final class Record: Sendable {
        let entries = Mutex<[String]>([])
        let isRunning = Atomic(false)
        let overlaps = Atomic(0)

        func run(_ entry: String) {
            if isRunning.exchange(true, ordering: .sequentiallyConsistent) {
                overlaps.add(1, ordering: .relaxed)
            }
            entries.withLock { $0.append(entry) }
            isRunning.store(false, ordering: .sequentiallyConsistent)
        }
    }

    @Test
    func `Events that wait are taken together, work runs alone, and the order is that of the calls`() {
        let record = Record()
        let queue = WorkQueue<Int>(label: "test") { events in
            record.run(events.map(String.init).joined(separator: "+"))
        }
        let (begun, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        queue.async {
            begun.signal()
            gate.wait()
        }
        // What is submitted before the queue takes this work would be taken with it.
        begun.wait()
        queue.submit([1], mayRun: true)
        queue.submit([2, 3], mayRun: false)
        queue.async { record.run("work") }
        queue.submit([4], mayRun: true)
        gate.signal()
        queue.sync { record.run("sync") }
        expectEqual(record.entries.withLock { $0 }, ["1+2+3", "work", "4", "sync"])
    }

    @Test
    func `An event may run on the thread that submits it`() {
        let threads = Mutex<[Thread]>([])
        let queue = WorkQueue<Int>(label: "test") { _ in threads.withLock { $0.append(Thread.current) } }
        let here = Thread.current
        queue.submit([1], mayRun: true)
        expect(threads.withLock { $0.first } === here)
        queue.submit([2], mayRun: false)
        queue.sync {}
        expectEqual(threads.withLock { $0.count }, 2)
    }

    @Test
    func `Many threads submit events and work: each runs once, one at a time, in the order of its thread`() async {
        let record = Record()
        let queue = WorkQueue<String>(label: "test") { events in for event in events { record.run(event) } }
        let threads = 8
        let count = 2000
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<threads {
                group.addTask {
                    for number in 0..<count {
                        let entry = "\(thread) \(number)"
                        switch number % 7 {
                        case 0: queue.async { record.run(entry) }
                        case 1: queue.submit([entry], mayRun: false)
                        default: queue.submit([entry], mayRun: true)
                        }
                    }
                }
            }
        }
        queue.sync {}
        let entries = record.entries.withLock { $0 }
        expectEqual(record.overlaps.load(ordering: .relaxed), 0)
        expectEqual(entries.count, threads * count)
        for thread in 0..<threads {
            let own = entries.filter { $0.hasPrefix("\(thread) ") }
            expectEqual(own, (0..<count).map { "\(thread) \($0)" })
        }
    }
}
