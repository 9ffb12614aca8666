// What the fields of proxies say about the client.

import Basics
import Calls
import TestSupport
import Testing

@testable import HTTPProtocols

@Suite(.timeLimit(.minutes(20))) struct ForwardedFieldsTests {
    private let proxies = TrustedProxies(["10.0.0.0/8", "fd00::/8"].compactMap { NetworkRange($0) })

    private func forwarding(_ fields: [(String, String)]) -> Forwarding {
        var head = HTTPHead()
        for (name, value) in fields {
            let (name, value) = (Array(name.utf8), Array(value.utf8))
            head.append(name: name.byteSpan, value: value.byteSpan)
        }
        return head.forwarding(trusting: proxies)
    }

    private func client(_ fields: (String, String)...) -> String? { forwarding(fields).address.map { "\($0)" } }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("198.51.100.7, 192.0.2.1", "192.0.2.1"),
        ("127.0.0.1, 192.0.2.1, 10.0.0.3 ,\tfd00::1", "192.0.2.1"), ("192.0.2.1:4711", "192.0.2.1"),
        ("x,192.0.2.1", "192.0.2.1"), ("2001:db8::1", "[2001:db8::1]"), ("[2001:db8::1]:80", "[2001:db8::1]"),
        ("10.0.0.1, 10.0.0.2", "10.0.0.1"), ("192.0.2.1,,", "192.0.2.1"), ("192.0.2.1,\u{301}, 192.0.2.2", "192.0.2.2"),
        ("\u{600}, 192.0.2.2", "192.0.2.2"),
    ])
    func `The rightmost address that is not of a trusted proxy is the client's`(list: String, expected: String) {
        expectEqual(client(("X-Forwarded-For", list)), expected)
    }

    @Test(arguments: ["", " , ", "unknown", "192.0.2.1, unknown", "192.0.2.1, _x, 10.0.0.1", "192.0.2.1 192.0.2.2"])
    func `A place without an address names no client`(list: String) {
        expectNil(client(("X-Forwarded-For", list)))
    }

    @Test func `Long lists are read from the right, for a bounded number of places`() {
        let trusted = Array(repeating: "10.0.0.1", count: 31).joined(separator: ",")
        expectEqual(client(("X-Forwarded-For", "192.0.2.9,192.0.2.1,\(trusted)")), "192.0.2.1")
        expectNil(client(("X-Forwarded-For", "192.0.2.1,10.0.0.1,\(trusted)")))
    }

    @Test(arguments: [
        ("for=192.0.2.1", "192.0.2.1"), ("For=\"[2001:db8::1]:4711\";proto=https", "[2001:db8::1]"),
        ("for=198.51.100.7, by=10.0.0.1 ; for = 192.0.2.1 ;proto=http", "192.0.2.1"),
        ("for=\"x, for=192.0.2.1", "192.0.2.1"), ("for=192.0.2.1, for=10.0.0.1", "192.0.2.1"),
    ])
    func `Forwarded is read as RFC 7239 has it`(list: String, expected: String) {
        expectEqual(client(("forwarded", list)), expected)
    }

    @Test(arguments: ["for=unknown", "for=\"_gazonk\"", "for", "=192.0.2.1", "192.0.2.1", "for=192.0.2.1, by=10.0.0.1"])
    func `An element of Forwarded without an address names no client`(list: String) {
        expectNil(client(("Forwarded", list)))
    }

    @Test func `Fields of one name are one list, and two lists have to agree`() {
        expectEqual(client(("x-forwarded-for", "198.51.100.7"), ("X-Forwarded-For", "192.0.2.1")), "192.0.2.1")
        expectEqual(client(("x-forwarded-for", "192.0.2.1"), ("Forwarded", "for=192.0.2.1")), "192.0.2.1")
        expectNil(client(("x-forwarded-for", "192.0.2.1"), ("Forwarded", "for=198.51.100.7")))
        expectNil(client(("x-forwarded-for", "192.0.2.1"), ("Forwarded", "for=unknown")))
        expectEqual(client(("x-forwarded-for", "192.0.2.1"), ("Forwarded", "proto=https")), "192.0.2.1")
        expectNil(client(("via", "192.0.2.1"), ("x-real-ip", "192.0.2.1")))
    }

    @Test func `Whatever stands left of it, the address that the proxy appends is the client's`() {
        var generator = SeededGenerator(seed: 27)
        let pieces = [
            ",", ";", "=", "\"", "for", "=unknown", " ", "\t", "192.0.2.9", "[::1]", "10.0.0.1", "\u{301}", "\u{600}",
            "\\",
        ]
        for _ in 0..<2_000 {
            let count = Int.random(in: 0...12, using: &generator)
            let prefix = (0..<count).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
            expectEqual(client(("X-Forwarded-For", prefix + ", 192.0.2.1")), "192.0.2.1", "\(prefix)")
            expectEqual(client(("Forwarded", prefix + ", for=192.0.2.1")), "192.0.2.1", "\(prefix)")
        }
    }

    @Test func `The last scheme counts`() {
        expect(forwarding([("x-forwarded-proto", "http, HTTPS")]).isSecure)
        expect(!forwarding([("x-forwarded-proto", "https, http")]).isSecure)
        expect(!forwarding([("x-forwarded-proto", "https"), ("forwarded", "proto=https, proto=http")]).isSecure)
        expect(forwarding([("forwarded", "for=192.0.2.1;proto=\"https\"")]).isSecure)
        expect(!forwarding([]).isSecure)
    }
}
