// Ownership of a libuv TCP handle by a Swift object.

import Basics
import CUV

/// Base of everything that wraps a `uv_tcp_t`: it keeps itself alive until libuv has let go of the handle.
///
/// Confined to its loop's thread, except that the last reference may be dropped anywhere once the handle is closed.
@safe package class TCPHandle: @unchecked Sendable {
    // Sendable: see above; every method runs on the loop's thread.

    package let loop: EventLoop
    // Owner: this object, freed in `deinit`, which cannot run before the close callback gives up its reference.
    let tcp: UnsafeMutablePointer<uv_tcp_t>
    private let closing = Confined(false)

    package var isClosing: Bool { closing.state }

    init(loop: EventLoop) {
        self.loop = loop
        unsafe tcp = .allocate(capacity: 1)
        unsafe expectSuccess(uv_tcp_init(loop.uv, tcp), "uv_tcp_init")
        unsafe tcp.pointee.data = Unmanaged.passRetained(self).toOpaque()
    }

    deinit { unsafe tcp.deallocate() }

    var stream: UnsafeMutablePointer<uv_stream_t> {
        unsafe UnsafeMutableRawPointer(tcp).assumingMemoryBound(to: uv_stream_t.self)
    }

    var handle: UnsafeMutablePointer<uv_handle_t> {
        unsafe UnsafeMutableRawPointer(tcp).assumingMemoryBound(to: uv_handle_t.self)
    }

    /// Closes the handle; the second call does nothing.
    func closeHandle() {
        guard !isClosing else { return }
        closing.state = true
        unsafe uv_close(handle) { handle in
            let this = unsafe Unmanaged<TCPHandle>.fromOpaque(handle!.pointee.data).takeRetainedValue()
            this.loop.beginTurn()
            this.handleClosed()
            this.loop.endTurn()
        }
    }

    /// The loop is ending: what is left is closed. Overridden by handles that report it.
    func cutOff() { closeHandle() }

    /// The handle is closed, no callback comes any more.
    func handleClosed() {}

    static func closeOrphan(_ handle: UnsafeMutablePointer<uv_handle_t>) {
        unsafe Unmanaged<TCPHandle>.fromOpaque(handle.pointee.data).takeUnretainedValue().cutOff()
    }
}
