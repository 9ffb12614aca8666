// The table of functions by which nghttp2 calls back into a client's session: each finds its session and does nothing
// else.

import Basics
import CNGHTTP2

/// Made once, shared by all sessions, never changed.
@safe final class GRPCClientCallbacks: @unchecked Sendable {
    // Sendable: immutable after `init`, and nghttp2 only reads the table.
    static let shared = GRPCClientCallbacks()

    // Owner: this object, which lives as long as the program.
    let callbacks: OpaquePointer

    private init() {
        var made: OpaquePointer?
        unsafe precondition(nghttp2_session_callbacks_new(&made) == 0, "out of memory for HTTP/2")
        unsafe callbacks = unsafe made!
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, _, user in
            let name = unsafe RawSpan(_unsafeStart: name!, byteCount: nameCount)
            let value = unsafe RawSpan(_unsafeStart: value!, byteCount: valueCount)
            unsafe GRPCClientSession.with(user) { unsafe $0.field(frame!.pointee.hd.stream_id, name, value) }
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, stream, bytes, count, user in
            let bytes = unsafe RawSpan(_unsafeStart: bytes!, byteCount: count)
            unsafe GRPCClientSession.with(user) { $0.data(stream, bytes) }
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
            unsafe GRPCClientSession.with(user) { unsafe $0.frameEnded(frame!) }
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, code, user in
            unsafe GRPCClientSession.with(user) { $0.streamClosed(stream, code) }
            return 0
        }
        unsafe nghttp2_session_callbacks_set_error_callback2(callbacks) { _, _, text, count, user in
            let text = unsafe String(decoding: UnsafeRawBufferPointer(start: text, count: count), as: UTF8.self)
            unsafe GRPCClientSession.with(user) { $0.noteFailure(text) }
            return 0
        }
    }

    /// Gives nghttp2 the bytes of a call's messages.
    static let read: nghttp2_data_source_read_callback = { _, stream, room, length, flags, _, user in
        let room = unsafe UnsafeMutableRawBufferPointer(start: room, count: length)
        return unsafe GRPCClientSession.with(user) { unsafe $0.read(stream, into: room, &flags!.pointee) }
    }
}

extension GRPCClientSession {
    /// The session that nghttp2 was given, without a change of its reference count: it lives while nghttp2 calls.
    static func with<Result>(_ user: UnsafeMutableRawPointer?, _ body: (GRPCClientSession) -> Result) -> Result {
        unsafe Unmanaged<GRPCClientSession>.fromOpaque(user!)._withUnsafeGuaranteedRef { body($0) }
    }
}
