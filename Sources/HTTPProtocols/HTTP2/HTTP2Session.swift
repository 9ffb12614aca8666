// An HTTP/2 connection that carries gRPC calls and HTTP exchanges, without I/O: bytes go in and calls come out, answers
// go in and bytes come out.
//
//     received bytes ──▶ nghttp2 ──▶ request fields, message reader ──▶ delegate: begin, message, halfClosed, cancelled
//     answers ──▶ `staged` ──▶ nghttp2, as windows permit ──▶ `send`
//
// nghttp2 does frames, HPACK, both flow controls and the rules of RFC 9113. Here requests become messages
// (HTTP2Session+Requests.swift) and answers become HEADERS, DATA and trailers (HTTP2Session+Answers.swift). Other
// requests become exchanges (HTTP2Session+HTTP.swift).
//
// A message that comes whole is lent to the handler where it was received. Answers are written into one buffer,
// `staged`, and copied once, into the connection's output, when nghttp2 has a frame for them. What the client's windows
// keep back outlives the turn in a buffer of its stream; while more than a limit is kept back, further requests wait,
// so that a client that asks and does not read costs a bounded amount of memory.

import Basics
import CNGHTTP2
import Calls
import Connections

/// Gets what a session found in the bytes it received; called inside ``HTTP2Session/receive(_:now:)``,
/// ``HTTP2Session/beginWaiting(atMost:)``, ``HTTP2Session/inflatePiece()`` and
/// ``HTTP2Session/refuseLate(now:limit:)``, and may answer calls there.
protocol HTTP2SessionDelegate: AnyObject {
    /// A call has come with its first message, which is lent.
    func begin(_ stream: UInt32, _ head: RequestHead, _ payload: RawSpan)
    /// A further message of a bidirectional call, lent too.
    func message(_ stream: UInt32, _ payload: RawSpan, isLast: Bool)
    /// The client of a bidirectional call sends no more messages.
    func halfClosed(_ stream: UInt32)
    /// A call has come, but waits for its first message, or until answers before it have been taken.
    func waits(_ stream: UInt32, _ head: RequestHead)
    /// The client, or a fault of its stream, ended the call.
    func cancelled(_ stream: UInt32)
    /// The client of a bidirectional call sends no message at all: the call has not begun, and ends with OK.
    func endedEmpty(_ stream: UInt32)
    /// The call cannot be served.
    func refused(_ stream: UInt32, _ refusal: Refusal)
    /// A request other than a gRPC call is complete; its body is lent.
    func request(_ exchange: HTTP2Exchange, _ body: RawSpan)
    /// Such a request cannot be served.
    func refused(_ exchange: HTTP2Exchange, _ refusal: HTTPRefusal)
    /// The client permits more bytes on a stream, or on all of them.
    func windowOpened(_ stream: UInt32?)
    /// The client has answered our PING.
    func pingAcknowledged()

    /// An empty buffer to gather answers in.
    func takeBuffer() -> ByteBuffer
    /// Takes the buffer back.
    func recycle(_ writer: consuming ByteBuffer)
}

/// The result of received bytes.
enum HTTP2Progress: Equatable {
    case open
    /// The session is beyond repair: the last words of nghttp2 are to be sent, then the connection closed.
    case failed(String)
}

/// Confined to its connection's loop.
@safe final class HTTP2Session {
    let limits: HTTP2Limits
    /// The procedures that are served.
    let rpcs: RPCTable
    unowned(unsafe) let delegate: any HTTP2SessionDelegate
    // Owner: this object, freed in `deinit`. nghttp2 holds an unretained reference to this object and pointers of
    // `pool`.
    let session: OpaquePointer
    let pool = HTTP2StreamPool()
    let hot: Confined<Hot>

    /// What every call touches.
    struct Hot: ~Copyable {
        /// Fields of the request whose HEADERS are arriving.
        var fields: RequestFields
        /// When the header list began whose end has not come; nil between header lists.
        var fieldsSince: UInt64?
        /// The bytes that are shown now have opened the window of the connection, or may have.
        var hasConnectionWindowOpened = false
        /// When the bytes that are shown now arrived, in monotonic milliseconds.
        var now: UInt64
        /// When the last frame ended.
        var lastFrameAt: UInt64
        /// The stream looked up last.
        var known: StreamPlace?
        /// A whole message that ends where its DATA frame may end: lent, until that is known or `receive` returns.
        var held: DeferredMessage?

        /// Calls that are not over.
        var openCalls = 0
        /// Bytes in `assembly` of all streams.
        var assemblyBytes = 0
        /// Received bytes to permit again on the connection.
        var uncredited = 0
        /// Streams whose first message waits for answers to be taken, first come first.
        var waiting: [UInt32] = []
        /// Streams whose message is being inflated, first come first.
        var inflating: [UInt32] = []
        /// Calls with a deadline whose heads are among the bytes that are shown now, and whose messages have not come.
        var headsAlone: [UInt32] = []
        /// Bytes that were inflated at once in this turn.
        var inflatedBytes = 0

        /// Messages of this turn; nil while lent, and while there are none.
        var staged: ByteBuffer?
        /// 0 while it is lent.
        var stagedBytes: Int {
            switch staged {
            case .some(let writer): writer.count
            case .none: 0
            }
        }
        /// Where the message being written has its prefix.
        var messageStart = 0
        /// Streams with a range of `staged`.
        var stagedStreams: [UInt32] = []
        /// Bytes of all answers that nghttp2 has not framed.
        var unsentBytes = 0
        /// Whether these may be more than every connection may have.
        var mayKeepBack = true
        /// Answered streams whose clients have not ended their side; to be reset.
        var halfOpen: [UInt32] = []
        /// No stream is left to a client that sends more after the answer.
        var isLeaving = false
        /// Where `send` puts frames; nil outside of it.
        var output: ByteBuffer?
        var outputBytes: Int {
            switch output {
            case .some(let writer): writer.count
            case .none: 0
            }
        }

        var idleFrames: TokenBucket
        var resets: TokenBucket
        /// There were too many resets: the session fails when it is shown bytes again.
        var hasTooManyResets = false
        /// The stream that the client has reset last.
        var streamReset: UInt32 = 0
        /// Why the session failed, as nghttp2 or we put it.
        var failure: String?
        var hasSettings = false
        var clientLeaves = false
    }

    /// - Parameter checksFields: whether a request whose fields break the rules of HTTP is reset. Clients on a Unix
    ///   socket send its path as `:authority`, where a slash is not allowed.
    init(
        limits: HTTP2Limits, rpcs: RPCTable, delegate: any HTTP2SessionDelegate, checksFields: Bool = true,
        now: UInt64 = 0
    ) {
        self.limits = limits
        self.rpcs = rpcs
        unsafe self.delegate = delegate
        hot = Confined(
            Hot(
                fields: RequestFields(rpcs: rpcs, servesHTTP: limits.servesHTTP), now: now, lastFrameAt: now,
                idleFrames: TokenBucket(max: limits.idleFramesMax, perSecond: limits.idleFramesPerSecond, now: now),
                resets: TokenBucket(max: limits.resetsMax, perSecond: limits.resetsPerSecond, now: now)))
        unsafe session = unsafe Self.make(checksFields: checksFields)
        unsafe nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
        submitSettings()
    }

    deinit { unsafe nghttp2_session_del(session) }

    private static func make(checksFields: Bool) -> OpaquePointer {
        var option: OpaquePointer?
        unsafe precondition(nghttp2_option_new(&option) == 0, "out of memory for an HTTP/2 session")
        defer { unsafe nghttp2_option_del(option) }
        // Windows follow what the service has taken, not what has arrived.
        unsafe nghttp2_option_set_no_auto_window_update(option, 1)
        // Closed streams would only be kept for priorities, which gRPC has no use for.
        unsafe nghttp2_option_set_no_closed_streams(option, 1)
        // Resets are counted here, where a breach has a better code than nghttp2 gives it.
        unsafe nghttp2_option_set_stream_reset_rate_limit(option, UInt64(UInt32.max), UInt64(UInt32.max))
        unsafe nghttp2_option_set_max_continuations(option, HTTP2Limits.continuationsMax)
        if !checksFields { unsafe nghttp2_option_set_no_http_messaging(option, 1) }
        var session: OpaquePointer?
        unsafe precondition(
            nghttp2_session_server_new2(&session, HTTP2Callbacks.shared.callbacks, nil, option) == 0,
            "out of memory for an HTTP/2 session")
        return unsafe session!
    }

    private func submitSettings() {
        let values = [
            (NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streamsMax),
            (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.streamWindowBytes),
            (NGHTTP2_SETTINGS_MAX_FRAME_SIZE, limits.frameBytesMax),
            (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, UInt32(clamping: limits.metadataBytesMax)),
            (NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1),
        ]
        let entries = values.map { nghttp2_settings_entry(settings_id: Int32(bitPattern: $0.0.rawValue), value: $0.1) }
        unsafe nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
        unsafe nghttp2_session_set_local_window_size(session, 0, 0, Int32(limits.connectionWindowBytes))
    }

    // MARK: State

    var openCalls: Int { hot.state.openCalls }
    var openStreams: [UInt32] { pool.openCalls }
    /// Streams that HTTP/2 has not closed, whatever became of their calls.
    var streamCount: Int { pool.count }
    var assemblyBytes: Int { hot.state.assemblyBytes }
    /// Bytes of answers that are not in any frame yet.
    var unsentBytes: Int { hot.state.unsentBytes }
    /// Those beyond ``HTTP2Limits/pauseBytes``.
    var keptBackBytes: Int { max(0, hot.state.unsentBytes - limits.pauseBytes) }
    /// Whether there may be such bytes, after all that other connections have.
    var mayKeepBack: Bool {
        get { hot.state.mayKeepBack }
        set { hot.state.mayKeepBack = newValue }
    }
    /// Whether there are answers of this turn.
    var hasStaged: Bool { hot.state.stagedBytes > 0 }
    /// Whether so much is unsent that no further request is begun.
    ///
    /// What is unsent at the end of a turn while the connection's window is open is kept back by windows of streams. It
    /// does not hold up other calls before it is much: a client may read one reply slowly and make calls meanwhile.
    var isCongested: Bool {
        guard hot.state.unsentBytes >= limits.pauseBytes else { return false }
        if hot.state.stagedBytes >= limits.pauseBytes || !mayKeepBack { return true }
        if hot.state.unsentBytes >= limits.keptBackBytesMax { return true }
        return unsafe nghttp2_session_get_remote_window_size(session) <= 0
    }
    /// The client's first SETTINGS have come.
    var hasSettings: Bool { hot.state.hasSettings }
    /// The client said that it opens no more streams.
    var clientLeaves: Bool { hot.state.clientLeaves }
    var lastFrameAt: UInt64 { hot.state.lastFrameAt }
    var hasWaiting: Bool { !hot.state.waiting.isEmpty }
    /// Whether messages are being inflated: ``inflatePiece()`` is to be called.
    var isInflating: Bool { !hot.state.inflating.isEmpty }
    var wantsToSend: Bool { unsafe nghttp2_session_want_write(session) != 0 || !hot.state.halfOpen.isEmpty }
    /// Nothing more is to be read or sent: the session has ended.
    var isFinished: Bool { unsafe nghttp2_session_want_read(session) == 0 && !wantsToSend }
    var failure: String? { hot.state.failure }
    /// The highest stream that the client has opened.
    var lastStream: UInt32 { unsafe UInt32(bitPattern: nghttp2_session_get_last_proc_stream_id(session)) }

    /// The stream, if HTTP/2 has not closed it.
    @inline(__always)
    func find(_ stream: UInt32) -> StreamPlace? {
        if let known = hot.state.known, known.state.identifier == stream { return known }
        guard stream != 0, let found = unsafe nghttp2_session_get_stream_user_data(session, Int32(bitPattern: stream))
        else {
            return nil
        }
        let place = unsafe StreamPlace(found)
        hot.state.known = place
        return place
    }

    func isOpen(_ stream: UInt32) -> Bool {
        guard let found = find(stream) else { return false }
        return !found.state.isOver
    }

    /// Whether a header list should have arrived whole by now; nothing that arrives beside it matters.
    func isLate(now: UInt64, limit: UInt64) -> Bool { hot.state.fieldsSince.map { now - $0 >= limit } ?? false }

    /// Ends the calls whose request or message should have arrived whole by now; nothing else that arrives matters. The
    /// other calls of the connection continue: a proxy may send those of several clients over it.
    func refuseLate(now: UInt64, limit: UInt64) {
        pool.forEachLate(now: now, limit: limit) { stream in
            if let exchange = stream.state.http {
                unsafe delegate.refused(exchange, .tooLate)
            } else {
                unsafe delegate.refused(stream.state.identifier, .tooLate)
            }
        }
    }

    // MARK: Receiving

    /// Takes bytes of the connection, from the client's preface on.
    ///
    /// - Parameter now: monotonic milliseconds.
    func receive(_ bytes: RawSpan, now: UInt64) -> HTTP2Progress {
        hot.state.now = now
        hot.state.inflatedBytes = 0
        hot.state.idleFrames.fill(now: now)
        hot.state.resets.fill(now: now)
        let taken = unsafe bytes.withUnsafeBytes {
            unsafe nghttp2_session_mem_recv(session, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count)
        }
        copyDeferredMessage()
        reportHeadsAlone()
        creditConnection()
        reportConnectionWindow()
        if taken < 0 || hot.state.hasTooManyResets {
            let reason = unsafe hot.state.failure ?? String(cString: nghttp2_strerror(Int32(taken)))
            // nghttp2 says nothing to the client about floods and a wrong preface; the next turn of `send` does.
            let code =
                taken == Int(NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue) ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_ENHANCE_YOUR_CALM
            submitGoAway(code, reason)
            return .failed(reason)
        }
        return unsafe nghttp2_session_want_read(session) != 0
            ? .open : .failed(hot.state.failure ?? "the session has ended")
    }

    /// Reports once for all frames that have come: it concerns every call.
    private func reportConnectionWindow() {
        guard hot.state.hasConnectionWindowOpened else { return }
        hot.state.hasConnectionWindowOpened = false
        unsafe delegate.windowOpened(nil)
    }

    /// The deadline of a call counts from its head, also if its message comes later.
    private func reportHeadsAlone() {
        while let identifier = hot.state.headsAlone.popLast() {
            guard let stream = find(identifier), !stream.state.isOver, !stream.state.hasBegun else { continue }
            unsafe delegate.waits(identifier, stream.state.head)
        }
    }

    private func creditConnection() {
        guard hot.state.uncredited > 0 else { return }
        unsafe nghttp2_session_consume_connection(session, hot.state.uncredited)
        hot.state.uncredited = 0
    }

    /// Counts a frame that brings nothing; false when there were too many.
    func spendIdleFrame() -> Bool {
        if hot.state.idleFrames.take() { return true }
        hot.state.failure = "too many frames without effect"
        return false
    }

    /// Counts a stream that the client gave up, or on which it broke a rule, the limit of fields among them; false when
    /// there were too many.
    func spendReset() -> Bool {
        if hot.state.resets.take() { return true }
        hot.state.hasTooManyResets = true
        hot.state.failure = "too many stream resets"
        return false
    }

    // MARK: Ending

    /// Says that the connection will be drained, without yet saying which streams are the last: requests under way are
    /// served.
    func announceDrain() {
        unsafe nghttp2_submit_shutdown_notice(session)
        unsafe nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
    }

    /// Says that no stream beyond those received will be served, and why.
    func submitGoAway(_ code: nghttp2_error_code, _ text: String) {
        hot.state.isLeaving = true
        resetLingering(now: .max, limit: 0)
        let text = Array(text.utf8.prefix(200))
        unsafe nghttp2_submit_goaway(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nghttp2_session_get_last_proc_stream_id(session), code.rawValue,
            text,
            text.count)
    }
}
