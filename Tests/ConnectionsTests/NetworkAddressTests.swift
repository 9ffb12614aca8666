// Addresses and ranges of addresses.

import Calls
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct NetworkAddressTests {
    private func address(_ text: String) throws -> NetworkAddress { try #require(NetworkAddress(text), "\(text)") }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("2001:DB8:0::1", "[2001:db8::1]"),
        ("fe80::1%eth0", "[fe80::1]"), ("::", "[::]"), ("0.0.0.0", "0.0.0.0"),
    ])
    func `An address has one form`(text: String, form: String) throws {
        let address = try address(text)
        expectEqual(address.description, form)
        expectEqual(address.bytes.count, form.hasPrefix("[") ? 16 : 4)
        expectEqual(NetworkAddress(endpoint: form), address)
        expectEqual(NetworkAddress(endpoint: "\(form):8080"), address)
    }

    @Test(arguments: [
        "", "unknown", "_hidden", "1.2.3", "1.2.3.4.5", "256.0.0.1", "01.2.3.4", "1.2.3.4 ", "1.2.3.4\u{0}", "[::1]",
        "::1::", "1:2:3:4:5:6:7:8:9", "12345::", "\u{661}.2.3.4", String(repeating: "1", count: 1_000_000),
    ])
    func `Other texts are not addresses`(text: String) { expectNil(NetworkAddress(text)) }

    @Test(arguments: ["[::1", "[]:80", "[1.2.3.4", "a:80", ":80", "1.2.3.4:5:6", "local", "unknown"])
    func `Other texts are not addresses with ports`(text: String) { expectNil(NetworkAddress(endpoint: text)) }

    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.0", false), ("10.0.0.0/8", "::ffff:10.1.1.1", true),
        ("10.1.2.3", "10.1.2.3", true), ("10.1.2.3", "10.1.2.4", false), ("10.1.2.2/31", "10.1.2.3", true),
        ("128.0.0.0/1", "255.0.0.1", true), ("128.0.0.0/1", "127.0.0.1", false), ("10.0.0.0/8", "a00::", false),
        ("2001:db8::/32", "2001:db8:ffff::1", true), ("2001:db8::/32", "2001:db9::", false),
        ("2001:db8::/64", "2001:db8::ffff:0:0:1", true), ("2001:db8::/64", "2001:db8:0:1::", false),
        ("2001:db8::/65", "2001:db8::7fff:0:0:1", true), ("2001:db8::/65", "2001:db8::8000:0:0:1", false),
        ("::1", "::1", true), ("::1", "::2", false), ("::ffff:10.0.0.0/104", "10.1.1.1", true),
    ])
    func `A range has the addresses with its prefix`(range: String, text: String, isIn: Bool) throws {
        try expectEqual(#require(NetworkRange(range)).contains(address(text)), isIn)
    }

    @Test(arguments: [
        "", "/8", "10.0.0.0/", "10.0.0.0/0", "10.0.0.0/33", "10.0.0.1/8", "::/0", "::1/129", "fe80::%eth0/64",
        "10.0.0.0/8/8", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/99999999999999999999", "localhost",
    ])
    func `Other texts are not ranges`(text: String) { expectNil(NetworkRange(text)) }

    @Test func `Addresses of private networks are known`() throws {
        for text in ["127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.1.1", "169.254.1.1", "::1", "fd00::1", "fe80::1"] {
            try expect(address(text).isPrivate, "\(text)")
        }
        for text in ["192.0.2.1", "172.32.0.1", "11.0.0.1", "2001:db8::1", "::", "::2"] {
            try expect(!address(text).isPrivate, "\(text)")
        }
    }

    @Test func `An address that may be a proxy is not counted; a trusted proxy's client is`() {
        func counted(_ peer: String, isProxied: Bool, isForwarded: Bool = false, client: String? = nil) -> String? {
            RequestOrigin(
                isProxied: isProxied, isForwarded: isForwarded, peerAddress: peer,
                address: client.flatMap { NetworkAddress($0) }
            ).countedAddress.map { "\($0)" }
        }
        expectEqual(counted("10.0.0.1:80", isProxied: false), "10.0.0.1")
        expectNil(counted("10.0.0.1:80", isProxied: true))
        expectEqual(counted("198.51.100.1:80", isProxied: true), "198.51.100.1")
        expectEqual(counted("10.0.0.1:80", isProxied: true, isForwarded: true, client: "192.0.2.1"), "192.0.2.1")
        expectEqual(counted("10.0.0.1:80", isProxied: true, isForwarded: true, client: "10.0.0.7"), "10.0.0.7")
        expectEqual(counted("10.0.0.1:80", isProxied: true, isForwarded: true), "10.0.0.1")
        expectNil(counted("local", isProxied: false))
    }

    @Test(
        arguments: [
            ("198.51.100.1:80", false, "198.51.100.1"), ("[2001:db8::1:2:3:4]:80", false, "[2001:db8::]"),
            ("10.0.0.1:80", false, nil), ("[::1]:80", false, nil), ("local", false, nil),
            ("10.0.0.1:80", true, "10.0.0.1"),
        ] as [(String, Bool, String?)])
    func `A private network has no limits, unless a trusted proxy names it`(
        peer: String, isForwarded: Bool, network: String?
    ) {
        for isProxied in [false, true] {
            let origin = RequestOrigin(isProxied: isProxied, isForwarded: isForwarded, peerAddress: peer)
            expectEqual(origin.limitedNetwork.map { "\($0)" }, network)
        }
    }
}
