/// A stream that lasts as long as its client likes, and would hold up a drain. Confined to its loop.
protocol LastingStream: AnyObject {
    /// Takes nothing more, and ends with UNAVAILABLE when what was taken is done.
    func stopServing()
}

/// The lasting streams of one loop. Confined to it.
final class LastingStreams {
    private var open: [ObjectIdentifier: any LastingStream] = [:]
    /// False from the beginning of a drain.
    private(set) var isServing = true

    /// A stream has begun; during a drain it ends at once.
    func insert(_ stream: some LastingStream) {
        open[ObjectIdentifier(stream)] = stream
        if !isServing { stream.stopServing() }
    }

    /// A stream is over.
    func remove(_ stream: some LastingStream) { open[ObjectIdentifier(stream)] = nil }

    /// The server drains.
    func stopServing() {
        isServing = false
        for stream in open.values { stream.stopServing() }
    }
}
