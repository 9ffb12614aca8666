internal import Basics
internal import EventLoops

extension Channel {
    /// Moves what a session of HTTP/2 has to send into the output, and writes what is more than enough for one write.
    ///
    /// - Parameter send: appends frames to the output until it has at least so many bytes; returns whether the session
    ///   may have more.
    func transfer(_ send: (_ output: inout ByteBuffer, _ limit: Int) -> Bool) {
        while !isCongested, !isClosing {
            var output = takeOutput()
            // Counted from what waits there already: while a write is under way nothing is flushed, and output gathers
            // until the channel is congested.
            let limit = output.count + Channel.flushBytes
            let hasMore = send(&output, limit)
            returnOutput(output)
            guard hasMore else { return }
            flush()
        }
    }
}
