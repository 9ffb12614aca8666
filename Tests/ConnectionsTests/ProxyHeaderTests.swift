// Headers of the PROXY protocol, byte by byte.

import Basics
import Calls
import ConnectionTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct ProxyHeaderTests {
    private func beginning(_ bytes: [UInt8]) -> ProxyHeader.Beginning { .init(bytes) }

    private func header(_ bytes: [UInt8]) -> ProxyHeader? {
        guard case .header(let header, let count) = beginning(bytes) else { return nil }
        expectEqual(count, bytes.count)
        return header
    }

    private func isViolation(_ bytes: [UInt8]) -> Bool {
        if case .violation = beginning(bytes) { true } else { false }
    }

    private func address(_ text: String) throws -> NetworkAddress { try #require(NetworkAddress(text)) }

    private static let secure = TestProxyHeader.addition(0x20, [0x01, 0, 0, 0, 0])
    private static let documentationIPv6: [UInt8] = [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7]

    @Test func `The addresses of IPv4 and IPv6 are the client's`() throws {
        expectEqual(header(TestProxyHeader().bytes), ProxyHeader(address: try address("192.0.2.7")))
        let ipv6 = TestProxyHeader.ipv6(Self.documentationIPv6)
        expectEqual(header(ipv6.bytes), ProxyHeader(address: try address("2001:db8::7")))
        let mapped = TestProxyHeader.ipv6([UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, 2, 7])
        expectEqual(header(mapped.bytes), ProxyHeader(address: try address("192.0.2.7")))
    }

    @Test func `A proxy that speaks for itself names no client, whatever follows`() {
        expectEqual(header(TestProxyHeader.local.bytes), ProxyHeader())
        for command in [TestProxyHeader.local, TestProxyHeader().with { $0.versionAndCommand = 0x20 }] {
            expectEqual(header(command.with { $0.additions = [9, 9, 9, 9] }.bytes), ProxyHeader())
        }
    }

    @Test(arguments: [(0x00, 0), (0x01, 0), (0x10, 12), (0x12, 12), (0x22, 36), (0x31, 216), (0x32, 216)])
    func `A client without an address of a stream over IP is not known`(kind: Int, addressBytes: Int) {
        let header = TestProxyHeader().with {
            $0.familyAndKind = UInt8(kind)
            $0.addresses = [UInt8](repeating: 7, count: addressBytes)
        }
        expectEqual(self.header(header.bytes), ProxyHeader())
        expectEqual(self.header(header.with { $0.additions = Self.secure }.bytes), ProxyHeader(isSecure: true))
    }

    @Test func `The addition about TLS says whether the client uses it; others are skipped`() throws {
        let others = TestProxyHeader.addition(0x04, [1, 2, 3]) + TestProxyHeader.addition(0x05, [])
        func isSecure(_ additions: [UInt8]) -> Bool? {
            header(TestProxyHeader().with { $0.additions = additions }.bytes)?.isSecure
        }
        expectEqual(isSecure(others), false)
        expectEqual(isSecure(others + Self.secure), true)
        expectEqual(isSecure(Self.secure + others), true)
        expectEqual(isSecure(TestProxyHeader.addition(0x20, [0x06, 0, 0, 0, 0])), false)
        expectEqual(isSecure(TestProxyHeader.addition(0x20, [])), false)
    }

    @Test func `A header needs all of its bytes, and says how many`() {
        let bytes = TestProxyHeader().with { $0.additions = Self.secure }.bytes
        for count in 1..<bytes.count {
            let needed = count < ProxyHeader.fixedBytes ? ProxyHeader.fixedBytes : bytes.count
            expectEqual(beginning(Array(bytes[..<count])), .incomplete(bytesNeeded: needed), "\(count)")
        }
        let followed = beginning(bytes + [0x16, 0x03, 0x01])
        guard case .header(_, let count) = followed else {
            Issue.record("\(followed)")
            return
        }
        expectEqual(count, bytes.count)
    }

    @Test func `A signature with one other byte is none`() {
        let bytes = TestProxyHeader().bytes
        for index in ProxyHeader.signature.indices {
            var changed = bytes
            changed[index] ^= 0x20
            expectEqual(beginning(changed), .none, "\(index)")
            expectEqual(beginning(Array(changed[...index])), .none, "\(index)")
        }
    }

    @Test func `Headers that break a rule are violations`() {
        let header = TestProxyHeader()
        for byte in [0x01, 0x10, 0x11, 0x22, 0x2F, 0x31] as [UInt8] {
            expect(isViolation(header.with { $0.versionAndCommand = byte }.bytes), "\(byte)")
        }
        for byte in [0x03, 0x13, 0x1F, 0x41, 0xFF] as [UInt8] {
            expect(isViolation(header.with { $0.familyAndKind = byte }.bytes), "\(byte)")
        }
        for count in 0..<12 {
            expect(isViolation(header.with { $0.addresses = Array($0.addresses[..<count]) }.bytes), "\(count)")
        }
        expect(isViolation(header.with { $0.familyAndKind = 0x21 }.bytes))
        for count in 1..<Self.secure.count {
            expect(isViolation(header.with { $0.additions = Array(Self.secure[..<count]) }.bytes), "\(count)")
        }
    }

    @Test func `A header that claims too many bytes is refused before they come`() {
        let header = TestProxyHeader()
        let longest = header.with { $0.claimedLength = ProxyHeader.restBytesMax }.bytes
        expectEqual(beginning(longest), .incomplete(bytesNeeded: ProxyHeader.fixedBytes + ProxyHeader.restBytesMax))
        expect(isViolation(header.with { $0.claimedLength = ProxyHeader.restBytesMax + 1 }.bytes))
        expect(isViolation(Array(header.with { $0.claimedLength = 0xFFFF }.bytes[..<ProxyHeader.fixedBytes])))
        let full = TestProxyHeader.addition(0x04, [UInt8](repeating: 0, count: ProxyHeader.restBytesMax - 15))
        expect(self.header(header.with { $0.additions = full }.bytes) != nil)
    }

    @Test func `Version 1 is distinguished from requests of HTTP`() {
        let line = Array("PROXY TCP4 192.0.2.7 127.0.0.1 4660 8080\r\n".utf8)
        for count in 1..<6 {
            expectEqual(beginning(Array(line[..<count])), .incomplete(bytesNeeded: count + 1), "\(count)")
        }
        expectEqual(beginning(Array(line[..<6])), .version1)
        expectEqual(beginning(line), .version1)
        for text in ["PRI * HTTP/2.0", "PROPFIND / HTTP/1.1", "POST /", "PUT", "GET", "PROXYING"] {
            expectEqual(beginning(Array(text.utf8)), .none, "\(text)")
        }
    }
}

extension ProxyHeader.Beginning {
    fileprivate init(_ bytes: [UInt8]) { self = ProxyHeader.beginning(of: bytes.span.bytes) }
}
