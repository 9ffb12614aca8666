// From a host name to a connected channel, without blocking the loop.

import CUV
import Glibc

/// Resolves a name and tries its addresses in turn. Confined to its loop; reports the result once unless cancelled.
@safe package final class Connector: @unchecked Sendable {
    // Sendable: all `var`s are touched on the loop's thread only.

    private let host: String
    private let port: UInt16
    private let loop: EventLoop
    private let limits: ChannelLimits
    private var completion: ((Result<Channel, SocketError>) -> Void)?
    private var addresses: [ResolvedAddress] = []
    private var attempt: Channel?

    package init(
        host: String, port: UInt16, loop: EventLoop, limits: ChannelLimits,
        _ completion: @escaping (Result<Channel, SocketError>) -> Void
    ) {
        self.host = host
        self.port = port
        self.loop = loop
        self.limits = limits
        self.completion = completion
    }

    /// Begins; the result comes in a later turn of the loop.
    package func start() {
        if let address = ResolvedAddress(numericHost: host, port: port) {
            return loop.execute { self.resolved(.success([address])) }
        }
        HostResolver.shared.resolve(host) { [self] result in
            loop.execute { self.resolved(result) }
        }
    }

    /// Forgets the attempt; nothing is reported.
    package func cancel() {
        completion = nil
        attempt?.close(.finished)
        attempt = nil
    }

    private func resolved(_ result: Result<[ResolvedAddress], SocketError>) {
        switch result {
        case .success(let found):
            addresses = found.map { $0.with(port: port) }
            tryNext(after: nil)
        case .failure(let error):
            finish(.failure(error))
        }
    }

    private func tryNext(after error: SocketError?) {
        guard completion != nil else { return }
        guard !addresses.isEmpty else {
            return finish(.failure(error ?? failure("connect to \(host):\(port)", UV_ENOTCONN.rawValue)))
        }
        let address = addresses.removeFirst()
        let channel = Channel(loop: loop, limits: limits)
        attempt = channel
        let request = UnsafeMutablePointer<uv_connect_t>.allocate(capacity: 1)
        unsafe request.pointee.data = unsafe Unmanaged.passRetained(self).toOpaque()
        let error = unsafe address.withSockaddr { address, _ in
            unsafe uv_tcp_connect(request, channel.tcp, address) { request, status in
                let this = unsafe Unmanaged<Connector>.fromOpaque(request!.pointee.data).takeRetainedValue()
                unsafe request!.deallocate()
                this.loop.beginTurn()
                this.connected(status)
                this.loop.endTurn()
            }
        }
        if error < 0 {
            unsafe Unmanaged<Connector>.fromOpaque(request.pointee.data).release()
            unsafe request.deallocate()
            connected(error)
        }
    }

    private func connected(_ status: Int32) {
        guard let channel = attempt else { return }
        attempt = nil
        guard status == 0 else {
            channel.close(.broken(describeError(status)))
            return tryNext(after: failure("connect to \(host):\(port)", status))
        }
        channel.sendWithoutDelay()
        finish(.success(channel))
    }

    private func finish(_ result: Result<Channel, SocketError>) {
        if let complete = completion.take() {
            complete(result)
        } else if case .success(let channel) = result {
            channel.close(.finished)
        }
    }

    private func failure(_ attempt: String, _ error: Int32) -> SocketError {
        SocketError(attempt: attempt, code: error, reason: describeError(error))
    }
}
