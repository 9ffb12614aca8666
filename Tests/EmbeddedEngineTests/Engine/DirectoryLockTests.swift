// The lock of a data directory, whose file may be removed by the one that has it.

import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.timeLimit(.minutes(20)))
struct DirectoryLockTests {
    @Test
    func `One thread at a time has the lock, although each removes the file before it gives the lock back`() {
        let directory = TemporaryDirectory("lock")
        let path = directory.path
        let holders = Atomic(0)
        let conflicts = Atomic(0)
        let taken = Atomic(0)
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            for _ in 0..<5_000 {
                guard let lock = try? DirectoryFormat.lock(path) else { continue }
                taken.add(1, ordering: .relaxed)
                if holders.add(1, ordering: .sequentiallyConsistent).newValue > 1 {
                    conflicts.add(1, ordering: .relaxed)
                }
                sched_yield()
                holders.subtract(1, ordering: .sequentiallyConsistent)
                // The last that it does with the directory.
                unlink("\(path)/LOCK")
                lock.unlock()
            }
        }
        #expect(conflicts.load(ordering: .relaxed) == 0)
        #expect(taken.load(ordering: .relaxed) > 0)
    }
}
