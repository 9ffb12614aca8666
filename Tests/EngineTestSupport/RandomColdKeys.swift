import Basics
import Foundation
package import Storage

/// Keys of the engine in memory that reads must wait for: about one of four, chosen by a seed. What was waited for is
/// there then, until it is dropped now and again. Thread-safe.
package final class RandomColdKeys: ColdKeys {
    private struct State {
        var ready: Set<[UInt8]> = []
        var pending: Set<[UInt8]> = []
        var waits = 0
    }

    private let seed: UInt64
    private let state = Monitor(State())

    package init(seed: UInt64) { self.seed = seed }

    /// Keys by the seed that `HEARTH_TEST_COLD` has; nil without it.
    package static func ofEnvironment() -> RandomColdKeys? {
        ProcessInfo.processInfo.environment["HEARTH_TEST_COLD"].flatMap(UInt64.init).map(RandomColdKeys.init(seed:))
    }

    /// Calls of `makeReady`.
    package var waits: Int { state.withLock { $0.waits } }

    package func isPending(_ key: RawSpan) -> Bool {
        let bytes = [UInt8](copying: key)
        let hash = bytes.reduce(seed ^ 14_695_981_039_346_656_037) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
        guard (hash >> 32) % 4 == 0 else { return false }
        return state.withLock { state in
            if state.ready.contains(bytes) { return false }
            state.pending.insert(bytes)
            return true
        }
    }

    package func makeReady(_ completion: @escaping @Sendable (Result<Void, StorageError>) -> Void) {
        SystemThread.runDetached(name: "cold keys") { [self] in
            state.withLock { state in
                state.waits += 1
                if state.waits % 8 == 0, let key = state.ready.first { state.ready.remove(key) }
                state.ready.formUnion(state.pending)
                state.pending = []
            }
            completion(.success(()))
        }
    }
}
