/// A stream that lasts as long as its client likes, and would hold up a drain. Confined to its loop.
package protocol LongLivedStream: AnyObject {
    /// Takes nothing more, and ends with UNAVAILABLE when what was taken is done.
    func stopServing()

    /// Makes sure that the client may still have the stream, and ends it otherwise.
    func checkAccess()

    /// What the stream listens to; nil if it is not a listener.
    var listener: ListenerDescription? { get }
}

extension LongLivedStream {
    package func checkAccess() {}
    package var listener: ListenerDescription? { nil }
}

/// The lasting streams of one loop. Confined to it.
package final class LongLivedStreams {
    private var open: [ObjectIdentifier: any LongLivedStream] = [:]
    /// False from the beginning of a drain.
    package private(set) var isServing = true

    package init() {}

    /// A stream has begun; during a drain it ends at once.
    package func insert(_ stream: some LongLivedStream) {
        open[ObjectIdentifier(stream)] = stream
        if !isServing { stream.stopServing() }
    }

    /// A stream is over.
    package func remove(_ stream: some LongLivedStream) { open[ObjectIdentifier(stream)] = nil }

    /// To be called every few seconds while there is an access control.
    package func checkAccess() {
        for stream in open.values { stream.checkAccess() }
    }

    /// The listeners among them.
    package var listeners: [ListenerDescription] { open.values.compactMap(\.listener) }

    /// Ends some listeners.
    package func stopServing(_ isEnded: (ListenerDescription) -> Bool) {
        for stream in open.values where stream.listener.map(isEnded) ?? false { stream.stopServing() }
    }

    /// The server drains.
    package func stopServing() {
        isServing = false
        for stream in open.values { stream.stopServing() }
    }
}
