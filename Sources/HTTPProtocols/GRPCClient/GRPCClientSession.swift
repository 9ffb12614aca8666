// The client's side of an HTTP/2 connection that carries gRPC calls, without I/O: bytes go in and messages come out,
// calls go in and bytes come out. nghttp2 does frames, HPACK, both flow controls and the rules of RFC 9113.

import Basics
import CNGHTTP2
import Calls

/// Gets what a session found in the bytes that it received; called inside ``GRPCClientSession/receive(_:)``.
protocol GRPCClientSessionDelegate: AnyObject {
    /// The server's first SETTINGS have come.
    func opened()
    /// The server takes no further calls, for a reason in its words.
    func goingAway(_ text: String)
    /// A call is over. The session has forgotten it.
    func ended(_ call: GRPCClientCall, _ outcome: CallOutcome)
}

/// Confined to its connection's loop.
@safe final class GRPCClientSession {
    private let configuration: GRPCClientConfiguration
    unowned(unsafe) private let delegate: any GRPCClientSessionDelegate
    // Owner: this object, freed in `deinit`. nghttp2 holds an unretained reference to this object.
    private let session: OpaquePointer
    /// Calls that are not over, by their streams.
    private(set) var calls: [Int32: GRPCClientCall] = [:]
    private(set) var isOpen = false
    /// The first bytes of the connection, while they are too few to tell the protocol.
    private var firstBytes: [UInt8] = []
    /// Why the session failed, in nghttp2's words.
    private var failure: String?

    init(_ configuration: GRPCClientConfiguration, delegate: any GRPCClientSessionDelegate) {
        self.configuration = configuration
        unsafe self.delegate = delegate
        var option: OpaquePointer?
        unsafe precondition(nghttp2_option_new(&option) == 0, "out of memory for an HTTP/2 session")
        defer { unsafe nghttp2_option_del(option) }
        // Windows follow what the caller has taken, not what has arrived.
        unsafe nghttp2_option_set_no_auto_window_update(option, 1)
        unsafe nghttp2_option_set_no_closed_streams(option, 1)
        unsafe nghttp2_option_set_max_continuations(option, HTTP2Limits.continuationsMax)
        var session: OpaquePointer?
        unsafe precondition(
            nghttp2_session_client_new2(&session, GRPCClientCallbacks.shared.callbacks, nil, option) == 0,
            "out of memory for an HTTP/2 session")
        unsafe self.session = unsafe session!
        unsafe nghttp2_session_set_user_data(self.session, Unmanaged.passUnretained(self).toOpaque())
        submitSettings()
    }

    deinit { unsafe nghttp2_session_del(session) }

    private func submitSettings() {
        let values = [
            (NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
            (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, configuration.streamWindowBytes),
            (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, UInt32(clamping: configuration.metadataBytesMax)),
        ]
        let entries = values.map { nghttp2_settings_entry(settings_id: Int32(bitPattern: $0.0.rawValue), value: $0.1) }
        unsafe nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
        unsafe nghttp2_session_set_local_window_size(session, 0, 0, Int32(configuration.connectionWindowBytes))
    }

    // MARK: Calls

    /// Opens a stream for a call. nghttp2 sends it as soon as the server's limit of streams permits.
    ///
    /// - Parameter fields: the header fields of the request.
    /// - Returns: false if the connection has no stream left.
    func start(_ call: GRPCClientCall, _ fields: [(name: String, value: [UInt8])]) -> Bool {
        var provider = unsafe nghttp2_data_provider()
        unsafe provider.read_callback = GRPCClientCallbacks.read
        var stream: Int32 = 0
        unsafe HTTP2Session.withFields(fields) { list, count in
            unsafe stream = nghttp2_submit_request(session, nil, list, count, &provider, nil)
            return stream
        }
        guard stream > 0 else { return false }
        call.stream = stream
        calls[stream] = call
        return true
    }

    /// There are further bytes to send for a call, or its end.
    func resumeSending(_ call: GRPCClientCall) {
        guard call.isDeferred else { return }
        call.isDeferred = false
        unsafe nghttp2_session_resume_data(session, call.stream)
    }

    /// Forgets a call and has the server stop.
    func reset(_ call: GRPCClientCall) {
        guard calls.removeValue(forKey: call.stream) != nil else { return }
        unsafe nghttp2_submit_rst_stream(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), call.stream, NGHTTP2_CANCEL.rawValue)
    }

    /// Forgets all calls. Theirs ends with the connection.
    func takeAll() -> [GRPCClientCall] {
        defer { calls = [:] }
        return calls.values.sorted { $0.stream < $1.stream }
    }

    /// Permits the server what its call has taken, unless the caller wants nothing more for now.
    func credit(_ call: GRPCClientCall) {
        guard !call.isPaused, call.uncredited > 0 else { return }
        unsafe nghttp2_session_consume_stream(session, call.stream, call.uncredited)
        call.uncredited = 0
    }

    func ping() { unsafe nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil) }

    // MARK: Bytes

    /// Takes bytes of the connection.
    ///
    /// - Returns: why the connection cannot continue; nil if it can.
    func receive(_ bytes: RawSpan) -> String? {
        if !isOpen, isForeign(bytes) { return "it does not begin with SETTINGS" }
        let taken = unsafe bytes.withUnsafeBytes {
            unsafe nghttp2_session_mem_recv(session, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count)
        }
        if taken < 0 { return unsafe failure ?? String(cString: nghttp2_strerror(Int32(taken))) }
        return unsafe nghttp2_session_want_read(session) != 0 ? nil : failure ?? "the session has ended"
    }

    /// Whether the connection begins with something else than a SETTINGS frame, for whose end nghttp2 would wait: a
    /// length below 64 KiB, type 4 (RFC 9113, 3.4 and 6.5).
    private func isForeign(_ bytes: RawSpan) -> Bool {
        firstBytes.append(contentsOf: bytes.extracting(0..<min(bytes.byteCount, max(0, 4 - firstBytes.count))))
        return firstBytes.first ?? 0 != 0 || (firstBytes.count == 4 && firstBytes[3] != 4)
    }

    /// Appends frames until there is nothing to send now, or the output has at least `limit` bytes.
    ///
    /// - Returns: whether there may be more to send now.
    func send(into output: inout ByteBuffer, upTo limit: Int) -> Bool {
        while output.count < limit {
            var frame: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(session, &frame)
            guard count > 0 else { return false }
            unsafe output.append(RawSpan(_unsafeStart: frame!, byteCount: count))
        }
        return true
    }

    // MARK: Callbacks of nghttp2

    /// Gives nghttp2 the next bytes of a call's messages.
    func read(_ stream: Int32, into room: UnsafeMutableRawBufferPointer, _ flags: inout UInt32) -> Int {
        guard let call = calls[stream] else {
            flags |= NGHTTP2_DATA_FLAG_EOF.rawValue
            return 0
        }
        let count = min(room.count, call.outgoing.count - call.outgoingStart)
        let start = call.outgoingStart
        unsafe call.outgoing.withUnsafeBytes { bytes in
            unsafe room.copyMemory(from: .init(rebasing: bytes[start..<start + count]))
        }
        call.outgoingStart += count
        if call.outgoingStart == call.outgoing.count {
            call.outgoing = []
            call.outgoingStart = 0
            if call.isSent {
                flags |= NGHTTP2_DATA_FLAG_EOF.rawValue
            } else if count == 0 {
                call.isDeferred = true
                return Int(NGHTTP2_ERR_DEFERRED.rawValue)
            }
        }
        return count
    }

    func field(_ stream: Int32, _ name: RawSpan, _ value: RawSpan) {
        guard let call = calls[stream] else { return }
        if let failure = call.answer.take(name, value, fieldBytesMax: configuration.metadataBytesMax) {
            fail(call, failure)
        }
    }

    func data(_ stream: Int32, _ bytes: RawSpan) {
        unsafe nghttp2_session_consume_connection(session, bytes.byteCount)
        guard let call = calls[stream] else { return }
        call.uncredited += bytes.byteCount
        let failure = call.answer.take(bytes, bytesMax: configuration.messageBytesMax) { message in
            call.handler?.received(message)
        }
        if let failure { fail(call, failure) } else { credit(call) }
    }

    /// An answer broke a limit of ours.
    private func fail(_ call: GRPCClientCall, _ outcome: CallOutcome) {
        reset(call)
        unsafe delegate.ended(call, outcome)
    }

    func frameEnded(_ frame: UnsafePointer<nghttp2_frame>) {
        switch UInt32(unsafe frame.pointee.hd.type) {
        case NGHTTP2_SETTINGS.rawValue:
            guard !isOpen else { return }
            isOpen = true
            unsafe delegate.opened()
        case NGHTTP2_GOAWAY.rawValue:
            let goAway = unsafe frame.pointee.goaway
            let text = unsafe UnsafeRawBufferPointer(start: goAway.opaque_data, count: goAway.opaque_data_len)
            unsafe delegate.goingAway(String(decoding: text.prefix(200), as: UTF8.self))
        default: break
        }
    }

    func streamClosed(_ stream: Int32, _ code: UInt32) {
        guard let call = calls.removeValue(forKey: stream) else { return }
        unsafe delegate.ended(call, outcome(of: call, code))
    }

    private func outcome(of call: GRPCClientCall, _ code: UInt32) -> CallOutcome {
        let name = unsafe String(cString: nghttp2_http2_strerror(code))
        // The table of gRPC's page "gRPC over HTTP2", section Errors.
        switch nghttp2_error_code(code) {
        case NGHTTP2_NO_ERROR: return call.answer.outcome
        case NGHTTP2_REFUSED_STREAM:
            return CallOutcome(.unavailable, "the server did not take the call", isUnprocessed: true)
        case NGHTTP2_CANCEL: return CallOutcome(.cancelled, "the server cancelled the call")
        case NGHTTP2_ENHANCE_YOUR_CALM: return CallOutcome(.resourceExhausted, "the server said \(name)")
        case NGHTTP2_INADEQUATE_SECURITY: return CallOutcome(.permissionDenied, "the server said \(name)")
        default: return CallOutcome(.internal, "the server ended the call with \(name)")
        }
    }

    func noteFailure(_ text: String) { failure = text }
}
