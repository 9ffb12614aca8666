// From a host name to a connected channel, without blocking the loop.

import CUV
import Glibc

/// Resolves a name and tries its addresses in turn. Confined to its loop; reports the result once unless cancelled.
///
/// An address that does not answer does not hold up the others: the next one is tried too after a short time, and the
/// first connection is taken (RFC 8305, "Happy Eyeballs").
@safe package final class Connector: @unchecked Sendable {
    // Sendable: all `var`s are touched on the loop's thread only.

    private let host: String
    private let port: UInt16
    private let loop: EventLoop
    private let limits: ChannelLimits
    private var completion: ((Result<Channel, SocketError>) -> Void)?
    /// Those that were not tried yet.
    private var addresses: [ResolvedAddress] = []
    private var attempts: [Channel] = []
    private var lastFailure: SocketError?
    /// Tries the next address while the ones before it do not answer.
    private var timer: EventLoop.Timer?

    /// The "connection attempt delay" of RFC 8305, section 5.
    private static let delayMilliseconds: UInt64 = 250

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
            return loop.execute { self.connect(to: [address]) }
        }
        HostResolver.shared.resolve(host) { [self] result in
            loop.execute { self.resolved(result) }
        }
    }

    /// Forgets the attempts; nothing is reported.
    package func cancel() {
        completion = nil
        endAttempts()
    }

    private func resolved(_ result: Result<[ResolvedAddress], SocketError>) {
        switch result {
        case .success(let found): connect(to: found.map { $0.with(port: port) })
        case .failure(let error): finish(.failure(error))
        }
    }

    /// Tries addresses in turn, on the loop.
    func connect(to addresses: [ResolvedAddress]) {
        self.addresses = addresses
        tryNext()
    }

    private func tryNext() {
        if let timer = timer.take() { loop.cancel(timer) }
        guard completion != nil else { return }
        guard !addresses.isEmpty else {
            if !attempts.isEmpty { return }
            return finish(.failure(lastFailure ?? failure("connect to \(host):\(port)", UV_ENOTCONN.rawValue)))
        }
        let address = addresses.removeFirst()
        let channel = Channel(loop: loop, limits: limits)
        attempts.append(channel)
        if !addresses.isEmpty {
            timer = loop.schedule(afterMilliseconds: Self.delayMilliseconds) { [weak self] in self?.tryNext() }
        }
        let request = UnsafeMutablePointer<uv_connect_t>.allocate(capacity: 1)
        let attempt = Attempt(connector: self, channel: channel)
        unsafe request.pointee.data = unsafe Unmanaged.passRetained(attempt).toOpaque()
        let error = unsafe address.withSockaddr { address, _ in
            unsafe uv_tcp_connect(request, channel.tcp, address) { request, status in
                let this = unsafe Unmanaged<Attempt>.fromOpaque(request!.pointee.data).takeRetainedValue()
                unsafe request!.deallocate()
                this.connector.loop.beginTurn()
                this.connector.ended(this.channel, status)
                this.connector.loop.endTurn()
            }
        }
        if error < 0 {
            unsafe Unmanaged<Attempt>.fromOpaque(request.pointee.data).release()
            unsafe request.deallocate()
            ended(channel, error)
        }
    }

    /// What the request of an attempt refers to.
    private final class Attempt {
        let connector: Connector
        let channel: Channel

        init(connector: Connector, channel: Channel) {
            self.connector = connector
            self.channel = channel
        }
    }

    private func ended(_ channel: Channel, _ status: Int32) {
        guard let index = attempts.firstIndex(where: { $0 === channel }) else { return }
        attempts.remove(at: index)
        guard status == 0 else {
            channel.close(.broken(describeError(status)))
            lastFailure = failure("connect to \(host):\(port)", status)
            return tryNext()
        }
        channel.sendWithoutDelay()
        finish(.success(channel))
    }

    private func finish(_ result: Result<Channel, SocketError>) {
        endAttempts()
        if let complete = completion.take() {
            complete(result)
        } else if case .success(let channel) = result {
            channel.close(.finished)
        }
    }

    private func endAttempts() {
        if let timer = timer.take() { loop.cancel(timer) }
        for channel in attempts { channel.close(.finished) }
        attempts = []
    }

    private func failure(_ attempt: String, _ error: Int32) -> SocketError {
        SocketError(attempt: attempt, code: error, reason: describeError(error))
    }
}
