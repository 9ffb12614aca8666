// A store whose threads belong to a simulation, over an engine in memory whose syncs take time and may fail.

import Basics
import DocumentModel
import MemoryEngine
import Storage
import TestSupport

@testable import DocumentStore

extension StoreHarness {
    /// A store with the time of the simulation. The seed decides whether the commit thread syncs, and how long syncs
    /// take.
    /// - Parameter syncFailsOnceIn: a sync fails once in so many, and ends what the store accepts; nil for never.
    static func simulated(
        _ simulation: Simulation, syncFailsOnceIn: Int? = nil,
        configure: (inout StoreConfiguration) -> Void = { _ in }
    ) throws -> StoreHarness {
        let syncMicrosecondsMax = simulation.random.pick([1, 30, 3_000])
        return try StoreHarness {
            $0.clock = SystemClock()
            $0.volume = MemoryVolume(replaysRecords: true, syncsInBackground: true)
            if simulation.random.oneIn(2) { $0.inlineSyncBytesMax = 0 }
            $0.engine.fault = { operation in
                guard operation == .syncLog else { return 0 }
                SystemThread.sleep(microseconds: UInt32(simulation.random.below(syncMicrosecondsMax)))
                return syncFailsOnceIn.map { simulation.random.oneIn($0) } == true ? 5 : 0
            }
            configure(&$0)
        }
    }

    /// The outcome of a commit; the calling thread waits for it.
    /// - Parameter replied: called with the reply, on the thread that sends it.
    func wait(
        for writes: [StepWrite], maySync: Bool = false,
        replied: @escaping @Sendable (Result<CommitResult, RequestError>) -> Void = { _ in }
    ) throws -> Result<CommitResult, RequestError> {
        let outcome = Monitor<Result<CommitResult, RequestError>?>(nil)
        store.commit(CommitRequest(writes: try list(writes)), maySync: maySync) { result in
            replied(result)
            outcome.update { $0 = result }
        }
        return outcome.wait { $0 }
    }

    /// The number in a document at a time in microseconds; nil if there is none.
    func number(_ path: String, at microseconds: UInt64) throws -> Int64? {
        try integer(path, "n", .time(TimestampValue(microseconds: Int64(microseconds))))
    }
}
