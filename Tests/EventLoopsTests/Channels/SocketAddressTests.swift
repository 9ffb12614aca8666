// Which addresses are this machine's alone.

import TestSupport
import Testing

@testable import EventLoops

@Suite(.timeLimit(.minutes(20))) struct SocketAddressTests {
    @Test(arguments: [
        ("127.0.0.1", true), ("127.255.0.3", true), ("::1", true), ("::ffff:127.0.0.1", true), ("0.0.0.0", false),
        ("126.255.255.255", false), ("128.0.0.1", false), ("10.0.0.127", false), ("::", false), ("::2", false),
        ("::ffff:10.0.0.1", false), ("1::1", false), ("fe80::1", false), ("::127.0.0.1", false),
    ])
    func `Loopback is 127 of IPv4, also within IPv6, and 1 of IPv6`(host: String, isLoopback: Bool) throws {
        let address = try #require(ResolvedAddress(numericHost: host, port: 80))
        expectEqual(address.withSockaddr { pointer, _ in SocketAddress.isLoopback(pointer) }, isLoopback)
    }
}
