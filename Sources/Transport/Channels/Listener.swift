// A listening socket on one loop.

import CUV
import Glibc

final class Listener: TCPHandle, @unchecked Sendable {
    // Sendable: as TCPHandle says.

    private let limits: ChannelLimits
    private var accepted: ((Channel) -> Void)?
    private var failed: ((String) -> Void)?

    init(loop: EventLoop, limits: ChannelLimits) {
        self.limits = limits
        super.init(loop: loop)
    }

    /// Accepts from `descriptor`, which it owns from now on; returns libuv's text when that cannot be.
    func start(
        _ descriptor: Int32, backlog: Int32, accepted: @escaping (Channel) -> Void, failed: @escaping (String) -> Void
    ) -> String? {
        self.accepted = accepted
        self.failed = failed
        var error = unsafe uv_tcp_open(tcp, descriptor)
        if error == 0 {
            error = unsafe uv_listen(stream, backlog) { stream, status in
                let this = unsafe Unmanaged<Listener>.fromOpaque(stream!.pointee.data).takeUnretainedValue()
                this.connectionCame(status)
                this.loop.endTurn()
            }
        }
        guard error < 0 else { return nil }
        closeHandle()
        return describeError(error)
    }

    private func connectionCame(_ status: Int32) {
        guard status == 0 else { return failed?(describeError(status)) ?? () }
        let channel = Channel(loop: loop, limits: limits)
        let error = unsafe uv_accept(stream, channel.stream)
        guard error == 0 else {
            channel.close(.broken(describeError(error)))
            failed?(describeError(error))
            return
        }
        channel.sendWithoutDelay()
        accepted?(channel)
    }

    override func handleClosed() {
        accepted = nil
        failed = nil
    }
}

extension Channel {
    /// Turns Nagle's algorithm off: output is gathered here already.
    func sendWithoutDelay() { _ = unsafe uv_tcp_nodelay(tcp, 1) }

    /// Takes over a connected socket that another loop accepted.
    convenience init?(adopting descriptor: Int32, loop: EventLoop, limits: ChannelLimits) {
        self.init(loop: loop, limits: limits)
        guard unsafe uv_tcp_open(tcp, descriptor) == 0 else {
            closeDescriptor(descriptor)
            close(.stopped)
            return nil
        }
        sendWithoutDelay()
    }

    /// A second descriptor of the connection, for another loop; -1 when there is none to be had.
    func duplicateDescriptor() -> Int32 {
        var descriptor: uv_os_fd_t = -1
        guard unsafe uv_fileno(handle, &descriptor) == 0 else { return -1 }
        return fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    }

    /// The other side's address as `host:port`, or `unknown`.
    var peerAddress: String {
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
func closeDescriptor(_ descriptor: Int32) { _ = Glibc.close(descriptor) }
