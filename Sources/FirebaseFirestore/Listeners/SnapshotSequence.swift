/// The snapshots of a listener, in order, until it fails or the iteration ends.
///
/// Each iteration adds a listener. Snapshots wait in memory until they are consumed.
public struct SnapshotSequence<Snapshot: Sendable>: AsyncSequence, Sendable {
    /// A snapshot of a document or of a query.
    public typealias Element = Snapshot
    /// The error that ends the listener.
    public typealias Failure = any Error
    /// Receives the snapshots of one listener.
    public typealias AsyncIterator = AsyncThrowingStream<Snapshot, any Error>.Iterator

    /// Adds a listener.
    typealias Adding = @Sendable (_ listener: @escaping (Snapshot?, (any Error)?) -> Void) -> any ListenerRegistration

    private let add: Adding

    init(_ add: @escaping Adding) { self.add = add }

    /// Begins to listen.
    public func makeAsyncIterator() -> AsyncIterator {
        let (stream, continuation) = AsyncThrowingStream<Snapshot, any Error>.makeStream()
        let registration = add { snapshot, error in
            if let snapshot { continuation.yield(snapshot) }
            if let error { continuation.finish(throwing: error) }
        }
        let box = UncheckedBox(registration)
        continuation.onTermination = { _ in box.value.remove() }
        return stream.makeAsyncIterator()
    }
}
