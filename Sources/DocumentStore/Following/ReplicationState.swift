internal import Basics
internal import Synchronization

/// What a store knows of its replicas, or of its source. Thread-safe.
package final class ReplicationState: Sendable {
    private let followerCount = Atomic<Int>(0)
    private let connected = Atomic<Bool>(false)
    private let closed = Atomic<UInt64>(0)

    /// Streams to replicas.
    package var followers: Int { followerCount.load(ordering: .relaxed) }

    /// A stream to a replica has begun or ended.
    package func countFollower(_ change: Int) { followerCount.add(change, ordering: .relaxed) }

    /// Whether a replica has a stream from its source.
    package var isConnected: Bool {
        get { connected.load(ordering: .relaxed) }
        set { connected.store(newValue, ordering: .relaxed) }
    }

    /// A replica has everything up to this time of its source, in microseconds; 0 at first.
    package var closedMicroseconds: UInt64 {
        get { closed.load(ordering: .relaxed) }
        set { closed.store(newValue, ordering: .relaxed) }
    }
}
