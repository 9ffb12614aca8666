// A listening socket on one loop.

import CUV
import Glibc

/// Accepts the connections of a listening socket. Confined to its loop's thread.
///
/// libuv only watches the socket. Its own `uv_listen` accepts again at once when the process has no file descriptor
/// left, in a loop that does not end, so that the thread serves nothing else. Here such an error pauses the listener:
/// the connections wait in the kernel's backlog.
@safe package final class Listener: TimerTarget {
    /// Connections accepted before other sockets have their turn.
    private static let connectionsPerTurn = 64
    /// How long nothing is accepted after an error that another connection would meet too.
    private static let pauseMilliseconds: UInt64 = 100

    private let loop: EventLoop
    private let descriptor: Int32
    // Owner: this object, freed in `deinit`, which cannot run before the close callback gives up libuv's reference.
    private let poll: UnsafeMutablePointer<uv_poll_t>
    private var accepted: ((Int32) -> Void)?
    private var failed: ((String) -> Void)?
    private var pause: EventLoop.Timer?
    private var isClosing = false

    /// Accepts from `descriptor`, which it owns from now on.
    ///
    /// - Parameters:
    ///   - accepted: takes the descriptor of a connection, and owns it.
    ///   - failed: takes the system's text for an error that pauses the listener.
    /// - Returns: nil when the loop cannot watch the descriptor, which is then closed.
    package init?(
        loop: EventLoop, descriptor: Int32, accepted: @escaping (Int32) -> Void, failed: @escaping (String) -> Void
    ) {
        self.loop = loop
        self.descriptor = descriptor
        self.accepted = accepted
        self.failed = failed
        unsafe poll = .allocate(capacity: 1)
        let error = unsafe uv_poll_init(loop.uv, poll, descriptor)
        guard error == 0 else {
            failed(describeError(error))
            return nil
        }
        unsafe poll.pointee.data = Unmanaged.passRetained(self).toOpaque()
        watch()
    }

    deinit {
        // A listener that was closed has closed it already, even if the object is still referenced.
        if !isClosing { closeDescriptor(descriptor) }
        unsafe poll.deallocate()
    }

    private func watch() {
        let error = unsafe uv_poll_start(poll, Int32(UV_READABLE.rawValue)) { poll, _, _ in
            let this = unsafe Unmanaged<Listener>.fromOpaque(poll!.pointee.data).takeUnretainedValue()
            this.loop.beginTurn()
            this.acceptWaiting()
            this.loop.endTurn()
        }
        expectSuccess(error, "uv_poll_start")
    }

    private func acceptWaiting() {
        for _ in 0..<Self.connectionsPerTurn where !isClosing {
            let connection = accept(descriptor, nil, nil)
            if connection >= 0 {
                _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
                accepted?(connection)
                continue
            }
            switch errno {
            case EAGAIN: return
            // The connection ended before it was accepted.
            case EINTR, ECONNABORTED, EPROTO: continue
            case let error: return pauseAccepting(unsafe String(cString: strerror(error)))
            }
        }
    }

    /// The error is the process's or the system's: it lasts until descriptors or memory become free.
    private func pauseAccepting(_ reason: String) {
        failed?(reason)
        unsafe uv_poll_stop(poll)
        pause = loop.schedule(afterMilliseconds: Self.pauseMilliseconds, self)
    }

    package func timerFired(_ token: UInt64) {
        pause = nil
        if !isClosing { watch() }
    }

    /// Accepts no more; the second call does nothing.
    package func close() {
        guard !isClosing else { return }
        isClosing = true
        if let pause { loop.cancel(pause) }
        accepted = nil
        failed = nil
        unsafe uv_close(UnsafeMutableRawPointer(poll).assumingMemoryBound(to: uv_handle_t.self)) { handle in
            let this = unsafe Unmanaged<Listener>.fromOpaque(handle!.pointee.data).takeRetainedValue()
            closeDescriptor(this.descriptor)
        }
    }

    /// The loop is ending.
    static func closeOrphan(_ handle: UnsafeMutablePointer<uv_handle_t>) {
        unsafe Unmanaged<Listener>.fromOpaque(handle.pointee.data).takeUnretainedValue().close()
    }
}

extension Channel {
    /// Turns Nagle's algorithm off: output is gathered here already.
    func sendWithoutDelay() { _ = unsafe uv_tcp_nodelay(tcp, 1) }

    /// Takes over a connected socket; nil when the loop cannot, and then the socket is closed.
    package convenience init?(adopting descriptor: Int32, loop: EventLoop, limits: ChannelLimits) {
        self.init(loop: loop, limits: limits)
        guard unsafe uv_tcp_open(tcp, descriptor) == 0 else {
            closeDescriptor(descriptor)
            close(.stopped)
            return nil
        }
        sendWithoutDelay()
    }

    /// Whether this side's address is a loopback address; false if the system does not say.
    package var isAtLoopback: Bool {
        var storage = sockaddr_storage()
        var length = Int32(MemoryLayout<sockaddr_storage>.size)
        return unsafe withUnsafeMutablePointer(to: &storage) { storage in
            unsafe storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard unsafe uv_tcp_getsockname(tcp, address, &length) == 0 else { return false }
                return unsafe SocketAddress.isLoopback(address)
            }
        }
    }

    /// The other side's address as `host:port`, or `unknown`.
    package var peerAddress: String {
        var storage = sockaddr_storage()
        var length = Int32(MemoryLayout<sockaddr_storage>.size)
        return unsafe withUnsafeMutablePointer(to: &storage) { storage in
            unsafe storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard unsafe uv_tcp_getpeername(tcp, address, &length) == 0 else { return "unknown" }
                return unsafe SocketAddress.describe(address)
            }
        }
    }
}

/// `close(2)`, under a name that methods called `close` do not hide.
package func closeDescriptor(_ descriptor: Int32) { _ = Glibc.close(descriptor) }
