// Which certificates and keys are accepted.

import Foundation
import TLS
import TLSTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct CertificateTests {
    private let site = TestSite.shared

    private func handshake(
        name: String = "localhost", client: TLSContext? = nil, server: TLSContext? = nil
    ) throws -> SessionPair {
        let pair = try SessionPair(client ?? site.client(), server ?? site.server(), name: name)
        pair.exchange()
        return pair
    }

    @Test(arguments: [
        ("localhost", true), ("LOCALHOST", true), ("localhost.", true), ("127.0.0.1", true), ("::1", true),
        ("[::1]", true), ("a.example.test", true), ("example.test", false), ("a.b.example.test", false),
        ("127.0.0.2", false), ("::2", false), ("localhost.evil.test", false), ("subject", false),
    ])
    func `The certificate must have the name of the server`(name: String, isRight: Bool) throws {
        let pair = try handshake(name: name)
        expectEqual(pair.isOpen, isRight)
        if !isRight {
            expectEqual(pair.clientError?.kind, .untrustedPeer)
            expectEqual(pair.clientError?.reason.contains("mismatch"), true, "\(String(describing: pair.clientError))")
            // bad_certificate.
            expectEqual(pair.serverError?.kind, .alert(42))
        }
    }

    @Test(arguments: ["", ".", "a b", "a\0b", String(repeating: "a", count: 254)])
    func `What is not a host name is refused`(name: String) throws {
        let client = try site.client()
        #expect(throws: TLSError.self) { try TLSSession(client: client, serverName: name) }
    }

    @Test
    func `A certificate of an unknown authority is refused, with the system's authorities too`() throws {
        let other = TestAuthority("Other")
        for authorities in [TLSAuthorities.certificates(other.certificate), .system] {
            let pair = try handshake(client: site.client { $0.authorities = authorities })
            expectEqual(pair.clientError?.kind, .untrustedPeer)
            expectNil(pair.client.handshake)
            // unknown_ca.
            expectEqual(pair.serverError?.kind, .alert(48))
        }
    }

    @Test(arguments: [-7200 ... -60, 3600...7200])
    func `An expired certificate is refused, and one that is not valid yet`(valid: ClosedRange<Int>) throws {
        let certificate = site.authority.issue(["DNS:localhost"], valid: valid)
        let server = try site.server { $0.credential = credential(certificate) }
        expect(server.certificateExpires != nil)
        let pair = try handshake(server: server)
        expectEqual(pair.clientError?.kind, .untrustedPeer)
        expectEqual(pair.clientError?.reason.contains(valid.upperBound < 0 ? "expired" : "not yet valid"), true)
    }

    @Test
    func `A chain over an authority between is sent, and is missed when it is not given`() throws {
        let between = TestAuthority("Between", issuer: site.authority)
        let certificate = between.issue(["DNS:localhost"])
        let whole = try site.server { $0.credential = credential(certificate, chain: between.certificate) }
        try expect(handshake(server: whole).isOpen)
        let cut = try site.server { $0.credential = credential(certificate) }
        try expectEqual(handshake(server: cut).clientError?.kind, .untrustedPeer)
        // An authority between is trusted itself if it is named.
        let client = try site.client { $0.authorities = .certificates(between.certificate) }
        try expect(handshake(client: client, server: cut).isOpen)
    }

    @Test(arguments: [TestKeyKind.p256, .p384, .ed25519, .rsa(bits: 2048)])
    func `Each kind of key serves`(kind: TestKeyKind) throws {
        let certificate = site.authority.issue(["DNS:localhost"], key: TestKey(kind))
        try expect(handshake(server: site.server { $0.credential = credential(certificate) }).isOpen)
    }

    @Test
    func `A certificate or key that cannot serve is refused when the context is made`() throws {
        let good = site.certificate
        let certificate = good.certificate
        let key = good.key.privatePEM
        let weak = site.authority.issue(["DNS:localhost"], key: TestKey(.rsa(bits: 1024)))
        let damaged = Array(String(decoding: certificate, as: UTF8.self).replacing("MII", with: "MIJ").utf8)
        let cases: [(certificates: [UInt8], key: [UInt8], reason: String)] = [
            (certificate, TestKey().privatePEM, "does not belong"),
            (certificate, TestKey(.rsa(bits: 2048)).privatePEM, "does not belong"),
            (certificate, good.key.encryptedPEM(password: "secret"), "without a password"),
            (certificate, [], "without a password"), (certificate, certificate, "without a password"),
            ([], key, "no certificate"), (key, key, "no certificate"), (damaged, key, "damaged"),
            (certificate + damaged, key, "damaged"), (weak.certificate, weak.key.privatePEM, "too small"),
            ([UInt8](repeating: 0x2D, count: 5 << 20), key, "bytes"),
        ]
        for (certificates, key, reason) in cases {
            let error = #expect(throws: TLSError.self) {
                try site.server { $0.credential = TLSCredential(certificates: certificates, key: key) }
            }
            expectEqual(error?.kind, .configuration)
            expectEqual(error?.reason.contains(reason), true, "\(String(describing: error)), expected: \(reason)")
        }
    }
}

@Suite(.timeLimit(.minutes(20))) struct ClientCertificateTests {
    private let site = TestSite.shared
    private let authority = TestAuthority("Authority of clients")

    private func handshake(
        _ certificate: TestCertificate?, isRequired: Bool = true, lists: [UInt8]? = nil
    ) throws -> SessionPair {
        let server = try site.server {
            $0.clients = TLSClientVerification(
                authorities: authority.certificate, isRequired: isRequired, revocationLists: lists)
        }
        let client = try site.client { $0.credential = certificate.map { credential($0) } }
        let pair = try SessionPair(client, server)
        pair.exchange()
        return pair
    }

    @Test
    func `The names of a verified certificate are known, exactly as they are written`() throws {
        let certificate = authority.issue(["URI:spiffe://a/B", "DNS:Job.example", "email:a@b.test", "URI:urn:x"])
        let pair = try handshake(certificate)
        expect(pair.isOpen)
        expectEqual(
            pair.server.handshake?.peer?.names, ["URI:spiffe://a/B", "URI:urn:x", "DNS:Job.example"])
        expectEqual(
            pair.server.handshake?.peer, TLSPeer(uris: ["spiffe://a/B", "urn:x"], dnsNames: ["Job.example"]))
    }

    @Test
    func `A certificate without names has none, and neither has a client without a certificate`() throws {
        try expectEqual(handshake(authority.issue([])).server.handshake?.peer, TLSPeer())
        let pair = try handshake(nil, isRequired: false)
        expect(pair.isOpen)
        expectNil(pair.server.handshake?.peer)
    }

    @Test
    func `A client without a certificate is refused where one is required`() throws {
        let pair = try handshake(nil)
        expectEqual(pair.serverError?.kind, .untrustedPeer)
        // certificate_required: the client learns of it after its handshake.
        expectEqual(pair.clientError?.kind, .alert(116))
    }

    @Test(arguments: [true, false])
    func `Certificates of others, expired ones and revoked ones are refused`(isRequired: Bool) throws {
        let good = authority.issue(["URI:urn:good"])
        let revoked = authority.issue(["URI:urn:revoked"])
        let expired = authority.issue(["URI:urn:expired"], valid: -7200 ... -60)
        let other = TestAuthority("Other").issue(["URI:urn:good"])
        let list = authority.revocationList([revoked.serial])
        try expect(handshake(good, isRequired: isRequired, lists: list).isOpen)
        let clients = TLSClientVerification(authorities: authority.certificate, revocationLists: list)
        let end = try site.server { $0.clients = clients }.revocationListExpires
        expectEqual(end.map { abs($0 - Int64(Date().timeIntervalSince1970) - 86_400) < 3_600 }, true)
        try expect(handshake(revoked, isRequired: isRequired).isOpen)
        let cases: [(TestCertificate, [UInt8]?, String)] = [
            (revoked, list, "revoked"), (expired, nil, "expired"), (other, nil, "unable to get local issuer"),
            (good, authority.revocationList([], valid: -7200 ... -60), "CRL has expired"),
            (good, TestAuthority("Other").revocationList([]), "unable to get certificate CRL"),
        ]
        for (certificate, lists, reason) in cases {
            let pair = try handshake(certificate, isRequired: isRequired, lists: lists)
            expectEqual(pair.serverError?.kind, .untrustedPeer)
            expectEqual(pair.serverError?.reason.contains(reason), true, "\(String(describing: pair.serverError))")
            expectNil(pair.server.handshake)
        }
    }

    @Test
    func `Files without certificates or lists are refused`() {
        #expect(throws: TLSError.self) { try handshake(nil, lists: authority.certificate) }
        #expect(throws: TLSError.self) {
            try site.server { $0.clients = TLSClientVerification(authorities: Array("nothing".utf8)) }
        }
    }
}
