// One HTTP/2 stream, which is one gRPC call or one HTTP exchange, and the memory of all streams of a connection.

import Basics
import Calls
import Connections

/// A stream from its request's head until HTTP/2 has closed it. The call on it may be over earlier: then only what is
/// still to be sent keeps it.
struct HTTP2Stream {
    /// Zero = this place is free.
    var identifier: UInt32 = 0
    var head = RequestHead.none
    var encoding = MessageEncoding.identity
    /// What came as `authorization`, if that is kept.
    var authorization: [UInt8] = []
    /// What the client says about the client for which it forwards the request, if it is a trusted proxy.
    var forwarding: Forwarding?

    /// The exchange of a request other than a gRPC call; its body is in `assembly`.
    var http: HTTP2Exchange?

    // MARK: The request

    var reader = MessageReader()
    /// Parts of a message, or a whole one that cannot be handed on yet.
    var assembly = MessageAssembly()
    /// `assembly` holds a whole message.
    var isWhole = false
    /// A message that is being inflated. What follows it is not read before.
    var inflating: InflatingMessage?
    /// When what must arrive whole began to: the request of a method that takes one message, or a message of another;
    /// nil while nothing is awaited. Monotonic milliseconds.
    var arrivingSince: UInt64?
    /// The client sends nothing more.
    var clientEnded = false
    /// The handler knows of the call.
    var hasBegun = false
    /// The handler asked for no more messages for now.
    var isPaused = false
    /// Bytes received that the client has not been permitted again.
    var uncredited = 0

    // MARK: Reply

    /// The call is over: its answer is complete, or nobody waits for one.
    var isOver = false
    /// The answer's HEADERS are queued.
    var hasHead = false
    /// nghttp2 asked for data when there were none, and has to be resumed when there are.
    var isDeferred = false
    /// After what is unsent come the trailers.
    var isEnding = false
    var code = StatusCode.ok
    var text = ""
    /// Unsent bytes, the older part: those that outlived the turn in which they were written.
    var backlog: [UInt8] = []
    var backlogStart = 0
    /// Unsent bytes, the newer part: a range of the connection's staged output.
    var stagedStart = 0
    var stagedEnd = 0

    /// Unsent bytes at the last check for answers that nobody reads.
    var unsentSeen = 0

    /// A message is complete: the next one of a call that takes several has its own time.
    mutating func messageEnded() {
        if head.rpc.shape == .bidirectional { arrivingSince = nil }
    }

    var unsentBytes: Int { backlog.count - backlogStart + stagedEnd - stagedStart }
}

/// Where a stream's state stands: a small value that nghttp2 keeps with the stream. Confined to a loop.
@safe struct StreamPlace {
    // Owner: the pool that made it, which keeps the memory until it goes. A place used too late shows a free stream or
    // another one, never memory that is gone: code that keeps one over a turn checks the identifier.
    let pointer: UnsafeMutableRawPointer

    init(_ pointer: UnsafeMutableRawPointer) { unsafe self.pointer = unsafe pointer }

    static func == (left: StreamPlace, right: StreamPlace) -> Bool { unsafe left.pointer == right.pointer }

    var state: HTTP2Stream {
        @inline(__always) _read { yield unsafe pointer.assumingMemoryBound(to: HTTP2Stream.self).pointee }
        @inline(__always) nonmutating _modify {
            yield unsafe &pointer.assumingMemoryBound(to: HTTP2Stream.self).pointee
        }
    }
}

/// The streams of a connection at addresses that stay, for nghttp2 to keep. Places are used again; nothing is given
/// back before the connection ends. Confined to a loop.
@safe final class HTTP2StreamPool {
    private static let slabCount = 32

    // Owner: this pool. Each slab has `slabCount` initialised places, until deinit.
    private var slabs: [UnsafeMutablePointer<HTTP2Stream>] = unsafe []
    private var free: [StreamPlace] = []
    /// Streams in use.
    private(set) var count = 0

    deinit {
        for slab in 0..<(unsafe slabs.count) {
            unsafe slabs[slab].deinitialize(count: Self.slabCount)
            unsafe slabs[slab].deallocate()
        }
    }

    /// A fresh stream.
    func take() -> StreamPlace {
        if free.isEmpty { addSlab() }
        count += 1
        return free.removeLast()
    }

    /// The stream is gone.
    func give(_ stream: StreamPlace) {
        stream.state = HTTP2Stream()
        free.append(stream)
        count -= 1
    }

    private func addSlab() {
        let slab = UnsafeMutablePointer<HTTP2Stream>.allocate(capacity: Self.slabCount)
        unsafe slab.initialize(repeating: HTTP2Stream(), count: Self.slabCount)
        unsafe slabs.append(slab)
        for index in 0..<Self.slabCount { unsafe free.append(StreamPlace(unsafe slab + index)) }
    }

    /// The numbers of the calls that are not over, in no order.
    var openCalls: [UInt32] {
        var open: [UInt32] = []
        forEach { if !$0.state.isOver { open.append($0.state.identifier) } }
        return open
    }

    /// Shows the streams whose calls are over, in no order.
    func forEachEnded(_ body: (StreamPlace) -> Void) { forEach { if $0.state.isOver { body($0) } } }

    /// Shows the open calls that wait too long for what must arrive, in no order.
    func forEachLate(now: UInt64, limit: UInt64, _ body: (StreamPlace) -> Void) {
        forEach { stream in
            guard !stream.state.isOver, let since = stream.state.arrivingSince else { return }
            let bytes = stream.state.assembly.bytes.count
            if ArrivalTime.isOver(since: since, bytes: bytes, now: now, limit: limit) { body(stream) }
        }
    }

    private func forEach(_ body: (StreamPlace) -> Void) {
        for slab in 0..<(unsafe slabs.count) {
            for index in 0..<Self.slabCount {
                let place = unsafe StreamPlace(slabs[slab] + index)
                if place.state.identifier != 0 { body(place) }
            }
        }
    }
}
