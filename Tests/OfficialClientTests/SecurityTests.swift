// The official Python clients against servers with TLS, principals, users and rules. What they do and expect is in
// Tests/Interop/official_security.py, a function for each test here.

import Foundation
import TLSTestSupport
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct SecurityTests {
    private let directory = TemporaryDirectory("hearth-official-security")

    private func write(_ name: String, _ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: directory.path(of: name)))
    }

    /// Runs a scenario with a certificate of the tests for localhost, and a key of an issuer of tokens.
    private func run(_ scenario: String) throws {
        let authority = TestAuthority()
        let issued = authority.issue(["DNS:localhost", "IP:127.0.0.1"])
        let issuer = TestKey(.rsa(bits: 2_048))
        try FileManager.default.createDirectory(
            atPath: directory.path(of: "keys"), withIntermediateDirectories: false)
        try write("ca.pem", authority.certificate)
        try write("server.pem", issued.certificate)
        try write("server.key", issued.key.privatePEM)
        try write("issuer.pem", issuer.privatePEM)
        try write("keys/issuer.pem", issuer.publicPEM)
        let outcome = try OfficialClient.run(
            [HearthBinary.path, directory.path(of: ""), scenario], program: "official_security.py")
        expectEqual(outcome.status, 0, "\(outcome.text)")
    }

    @Test
    func `A service account's key file opens the server in all ways of the client library`() throws {
        try run("service_accounts")
    }

    @Test
    func `A reader is refused writes, and a principal of a collection reaches no other one`() throws {
        try run("roles")
    }

    @Test
    func `A revoked key ends its listeners, and its calls fail`() throws {
        try run("revoked_keys")
    }

    @Test
    func `Users reach what the rules permit them, by documents, queries, transactions and listeners`() throws {
        try run("users")
    }

    @Test
    func `Tokens that do not verify are refused without a word of them`() throws {
        try run("refused_tokens")
    }

    @Test
    func `A listener ends when a document that its rule reads no longer permits it`() throws {
        try run("listeners")
    }

    @Test
    func `A listener whose token expires continues with the next one`() throws {
        try run("expiry")
    }

    @Test
    func `A revoked user's listener ends, and continues after the next sign-in`() throws {
        try run("revoked_users")
    }

    @Test
    func `The emulator's mode has its owner, unsigned users, rules over its route, and coverage`() throws {
        try run("emulator")
    }

    @Test
    func `Requests of the library rules-unit-testing get the answers that it expects`() throws {
        try run("rules_unit_testing")
    }

    @Test
    func `The programs of the page about security do what it describes`() throws {
        try run("documentation")
    }

    @Test
    func `An open server refuses a proxy, and a closed one serves it by its rules`() throws {
        try run("proxies")
    }

    @Test
    func `No output of the server has a token, a key or an assertion`() throws {
        try run("canaries")
    }
}
