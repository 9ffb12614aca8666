// The table of functions by which nghttp2 calls back into a session: each finds its session and does nothing else.

import Basics
import CNGHTTP2

/// Made once, shared by all sessions, never changed.
@safe final class HTTP2Callbacks: @unchecked Sendable {
    // Sendable: immutable after `init`, and nghttp2 only reads the table.
    static let shared = HTTP2Callbacks()

    // Owner: this object, which lives as long as the program.
    let callbacks: OpaquePointer

    private init() {
        var made: OpaquePointer?
        unsafe precondition(nghttp2_session_callbacks_new(&made) == 0, "out of memory for HTTP/2")
        unsafe callbacks = unsafe made!
        setReceiving()
        setSending()
    }

    private func setReceiving() {
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, _, user in
            unsafe HTTP2Session.with(user) { $0.fieldsBegin() }
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, _, name, nameCount, value, valueCount, _, user in
            let name = unsafe RawSpan(_unsafeStart: name!, byteCount: nameCount)
            let value = unsafe RawSpan(_unsafeStart: value!, byteCount: valueCount)
            return unsafe HTTP2Session.with(user) { $0.field(name, value) }
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, stream, bytes, count, user in
            let bytes = unsafe RawSpan(_unsafeStart: bytes!, byteCount: count)
            return unsafe HTTP2Session.with(user) { $0.data(UInt32(bitPattern: stream), bytes) }
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
            unsafe HTTP2Session.with(user) { unsafe $0.frameEnded(frame!) }
        }
        unsafe nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) { _, frame, _, user in
            let header = unsafe frame!.pointee.hd
            return unsafe HTTP2Session.with(user) { $0.frameRefused(header) }
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, _, user in
            unsafe HTTP2Session.with(user) { $0.streamClosed(UInt32(bitPattern: stream)) }
        }
        unsafe nghttp2_session_callbacks_set_error_callback2(callbacks) { _, code, text, count, user in
            // It has the field, which may be a secret, and is about one stream.
            if code == NGHTTP2_ERR_HTTP_HEADER.rawValue { return 0 }
            let text = unsafe String(decoding: UnsafeRawBufferPointer(start: text, count: count), as: UTF8.self)
            return unsafe HTTP2Session.with(user) {
                $0.hot.state.failure = text
                return 0
            }
        }
    }

    private func setSending() {
        unsafe nghttp2_session_callbacks_set_send_data_callback(callbacks) { _, frame, header, count, source, user in
            let stream = unsafe StreamPlace(source!.pointee.ptr)
            let header = unsafe RawSpan(_unsafeStart: header!, byteCount: 9)
            return unsafe HTTP2Session.with(user) { $0.write(header, count, of: stream) }
        }
        // As large as windows and the client's frames permit: nghttp2 itself would stop at 16 KiB.
        unsafe nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks) {
            _, _, _, connectionWindow, streamWindow, frameBytesMax, _ in
            min(Int(connectionWindow), Int(streamWindow), Int(frameBytesMax), 1 << 16)
        }
    }

    /// Gives nghttp2 the bytes of a stream's answer.
    static let read: nghttp2_data_source_read_callback = { _, _, _, length, flags, source, user in
        let stream = unsafe StreamPlace(source!.pointee.ptr)
        return unsafe HTTP2Session.with(user) { unsafe $0.offer(stream, length, &flags!.pointee) }
    }
}

extension HTTP2Session {
    /// The session that nghttp2 was given, without a change of its reference count: it lives while nghttp2 calls.
    @inline(__always)
    static func with<Result>(_ user: UnsafeMutableRawPointer?, _ body: (HTTP2Session) -> Result) -> Result {
        unsafe Unmanaged<HTTP2Session>.fromOpaque(user!)._withUnsafeGuaranteedRef { body($0) }
    }
}
