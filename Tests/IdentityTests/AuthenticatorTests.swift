// From the field Authorization to a caller, in each mode, and while a stream runs.

import Foundation
import TestSupport
import Testing

@testable import Identity

@Suite(.timeLimit(.minutes(20))) struct AuthenticatorTests {
    private let revocations = Revocations()

    private func authenticator(
        _ mode: SecurityMode = .closed, principals: Principals? = nil
    ) throws -> Authenticator {
        Authenticator(
            mode: mode, users: try TestIssuer.verifier(), principals: try principals ?? Principals(),
            revocations: revocations, accessTokens: AccessTokens())
    }

    private func caller(_ mode: SecurityMode, _ authorization: String?) throws -> String {
        try authenticator(mode).authenticate(authorization: authorization, now: present).caller.name
    }

    /// A token as test tools make it: `iat` 0, no signature.
    private let unsigned =
        base64URL(#"{"alg":"none","type":"JWT"}"#) + "."
        + base64URL(#"{"iss":"x","aud":"shop","iat":0,"exp":3600,"auth_time":0,"sub":"bob","user_id":"bob"}"#) + "."

    @Test
    func `Owner and unsigned tokens are credentials in the emulator's mode alone`() throws {
        try expectEqual(caller(.emulator, "Bearer owner"), "admin")
        try expectEqual(caller(.emulator, "Bearer \(unsigned)"), "bob")
        try expectEqual(caller(.emulator, nil), "anonymous")
        let bob = try authenticator(.emulator).authenticate(authorization: "Bearer \(unsigned)", now: present)
        try authenticator(.emulator).check(bob, now: .max)
        guard case .user(let user) = bob.caller else {
            Issue.record("not a user")
            return
        }
        expect(user.opens(project: "any"))

        for credential in ["Bearer owner", "Bearer \(unsigned)"] {
            #expect(throws: TokenError.emulatorOnly) { try caller(.closed, credential) }
        }
        // A signed token is verified in the emulator's mode too.
        let forged = try TestIssuer.token(key: TestKeys.otherRSA)
        #expect(throws: TokenError.signature) {
            try caller(.emulator, "Bearer \(String(decoding: forged, as: UTF8.self))")
        }
        // `none` with a signature is neither.
        #expect(throws: TokenError.self) { try caller(.emulator, "Bearer \(unsigned)AAAA") }
        let nobody = base64URL(#"{"alg":"none"}"#) + "." + base64URL(#"{"user_id":7}"#) + "."
        #expect(throws: TokenError.subject) { try caller(.emulator, "Bearer \(nobody)") }
    }

    @Test(arguments: [SecurityMode.open, .insecure])
    func `An open server does not look at credentials`(mode: SecurityMode) throws {
        for credential in [nil, "Bearer owner", "Bearer \(unsigned)", "Basic abc", "Bearer a.b.c"] {
            try expectEqual(caller(mode, credential), "admin")
        }
    }

    @Test
    func `The field has the form 'Bearer TOKEN'`() throws {
        try expectEqual(Authenticator.bearer("Bearer abc"), Array("abc".utf8))
        try expectEqual(Authenticator.bearer("bEARER   a.b_c-d~+/="), Array("a.b_c-d~+/=".utf8))
        for wrong in ["", "Bearer", "Bearer ", "Bearer  ", "Basic abc", "Bearerabc", "Bearer a b", "Bearer é", "abc"] {
            #expect(throws: TokenError.scheme, "\(wrong)") { try Authenticator.bearer(wrong) }
        }
    }

    @Test
    func `A certificate's name is matched exactly; a token decides before a certificate does`() throws {
        var list = PrincipalList([])
        let grant = PrincipalList.Grant(role: .reader, scope: Scope(projects: ["shop"]))
        try list.addCertificate("URI:spiffe://a/b", to: "job", grant)
        let closed = try authenticator(principals: Principals(list.records))
        func name(_ names: [String], _ authorization: String? = nil) throws -> String {
            try closed.authenticate(authorization: authorization, certificates: names, now: present).caller.name
        }
        try expectEqual(name(["DNS:x", "URI:spiffe://a/b"]), "job")
        for wrong in ["DNS:spiffe://a/b", "URI:spiffe://a/B", "URI:spiffe://a/b/", "URI:spiffe://a"] {
            try expectEqual(name([wrong]), "anonymous")
        }
        let token = String(decoding: try TestIssuer.token(), as: UTF8.self)
        try expectEqual(name(["URI:spiffe://a/b"], "Bearer \(token)"), "ada")
        #expect(throws: TokenError.scheme) { try name(["URI:spiffe://a/b"], "Basic x") }
    }

    @Test
    func `While revocations of another server are awaited users are refused for now, and principals are not`() throws {
        var list = PrincipalList([])
        let key = try list.addAPIKey(
            to: "a", PrincipalList.Grant(role: .reader, scope: Scope(projects: ["shop"])), now: present)
        let closed = try authenticator(principals: Principals(list.records))
        let user = try closed.authenticate(bearer: TestIssuer.token(), now: present)
        revocations.areAwaited = true
        #expect(throws: TokenError.revocationsUnknown) {
            try closed.authenticate(bearer: TestIssuer.token(), now: present)
        }
        #expect(throws: TokenError.revocationsUnknown) { try closed.check(user, now: present) }
        expectEqual(TokenError.revocationsUnknown.requestError.code, .unavailable)
        _ = try closed.authenticate(bearer: Array(key.utf8), now: present)
        // What is known already is final.
        try revocations.revoke(uid: "ada", before: present)
        #expect(throws: TokenError.revoked) { try closed.check(user, now: present) }
        revocations.areAwaited = false
        #expect(throws: TokenError.revoked) { try closed.check(user, now: present) }
        let later = try TestIssuer.token(["auth_time": .integer(present)])
        try closed.check(closed.authenticate(bearer: later, now: present), now: present)
    }

    @Test
    func `A stream ends when its token expires, its user is revoked, or its principal is`() throws {
        let closed = try authenticator()
        let user = try closed.authenticate(bearer: TestIssuer.token(), now: present)
        try closed.check(user, now: present + 3599)
        #expect(throws: TokenError.expired) { try closed.check(user, now: present + 3600) }
        try revocations.revoke(uid: "ada", before: present - 100)
        try closed.check(user, now: present)
        try revocations.revoke(uid: "ada", before: present - 99)
        #expect(throws: TokenError.revoked) { try closed.check(user, now: present) }
        #expect(throws: TokenError.revoked) { try closed.authenticate(bearer: TestIssuer.token(), now: present) }
        let later = try TestIssuer.token(["auth_time": .integer(present - 50)])
        try closed.check(closed.authenticate(bearer: later, now: present), now: present)

        var list = PrincipalList([])
        let grant = PrincipalList.Grant(role: .writer, scope: Scope(projects: ["shop"]))
        let key = try list.addAPIKey(to: "a", grant, now: present)
        try list.addCertificate("DNS:a", to: "b", grant)
        let before = try authenticator(principals: Principals(list.records))
        let byKey = try before.authenticate(bearer: Array(key.utf8), now: present)
        let byCertificate = try before.authenticate(authorization: nil, certificates: ["DNS:a"], now: present)
        try authenticator(principals: Principals(list.records)).check(byKey, now: .max)
        let isCertificateRevoked = list.revoke(credential: "DNS:a")
        expect(isCertificateRevoked)
        let after = try authenticator(principals: Principals(list.records))
        try after.check(byKey, now: present)
        #expect(throws: TokenError.unknownPrincipal) { try after.check(byCertificate, now: present) }
        let isKeyRemoved = list.remove("a")
        expect(isKeyRemoved)
        let none = try authenticator(principals: Principals(list.records))
        #expect(throws: TokenError.unknownPrincipal) { try none.check(byKey, now: present) }
        try none.check(.admin, now: present)
        try none.check(.anonymous, now: present)
    }
}

@Suite(.timeLimit(.minutes(20))) struct RevocationTests {
    private let directory = TemporaryDirectory("hearth-revocations")
    private var path: String { directory.path(of: "revoked.json") }

    @Test
    func `Revocations survive a restart, and only reach farther`() throws {
        let revocations = try Revocations(path)
        expectEqual(revocations.version, 0)
        try revocations.revoke(uid: "ada", before: 100)
        try revocations.revoke(uid: "é", before: 200)
        try revocations.revoke(uid: "ada", before: 50)
        expectEqual(revocations.version, 2)
        for state in [revocations, try Revocations(path)] {
            expect(state.isRevoked(uid: "ada", signedInAt: 99))
            expect(!state.isRevoked(uid: "ada", signedInAt: 100))
            expect(!state.isRevoked(uid: "eve", signedInAt: 0))
            expect(state.isRevoked(uid: "é", signedInAt: 199))
            // Another spelling of the same character is another user.
            expect(!state.isRevoked(uid: "e\u{301}", signedInAt: 0))
        }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), ["revoked.json"])
    }

    @Test
    func `Two processes see each other's revocations, and neither takes one back`() throws {
        let (one, other) = (try Revocations(path), try Revocations(path))
        try one.revoke(uid: "ada", before: 100)
        expect(!other.isRevoked(uid: "ada", signedInAt: 99))
        try other.refresh()
        expect(other.isRevoked(uid: "ada", signedInAt: 99))
        expectEqual(other.version, 1)
        try other.refresh()
        expectEqual(other.version, 1)
        // Without a refresh of the first.
        try other.revoke(uid: "eve", before: 100)
        try one.revoke(uid: "bob", before: 100)
        for uid in ["ada", "eve", "bob"] {
            for state in [one, try Revocations(path)] { expect(state.isRevoked(uid: uid, signedInAt: 99), "\(uid)") }
        }
        try FileManager.default.removeItem(atPath: path)
        #expect(throws: PrincipalFault.self) { try one.refresh() }
        expect(one.isRevoked(uid: "ada", signedInAt: 99))
        try one.revoke(uid: "ada", before: 200)
        try expect(Revocations(path).isRevoked(uid: "eve", signedInAt: 99))
    }

    @Test
    func `A damaged file is refused, and after a write that fails the revocation is in force`() throws {
        for text in ["", "{}", #"{"revokedBefore":{"zz":1}}"#, #"{"revokedBefore":{"61":"x"}}"#] {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            #expect(throws: PrincipalFault.self) { try Revocations(path) }
        }
        try Data().write(to: URL(fileURLWithPath: directory.path(of: "file")))
        let nowhere = try Revocations(directory.path(of: "file/revoked.json"))
        #expect(throws: PrincipalFault.self) { try nowhere.revoke(uid: "ada", before: 1) }
        expect(nowhere.isRevoked(uid: "ada", signedInAt: 0) && !nowhere.isKept)
        expectEqual(nowhere.version, 1)
    }

    @Test
    func `A file that lacks what was known takes nothing back, and too many users are refused`() throws {
        let revocations = try Revocations(path)
        try revocations.revoke(uid: "ada", before: 100)
        try Revocations(directory.path(of: "other.json")).revoke(uid: "eve", before: 100)
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.moveItem(atPath: directory.path(of: "other.json"), toPath: path)
        try revocations.refresh()
        for uid in ["ada", "eve"] { expect(revocations.isRevoked(uid: uid, signedInAt: 99), "\(uid)") }
        // The next change brings back what the file lacks.
        try revocations.add([:])
        try expectEqual(Revocations(path).moments, revocations.moments)

        let many = Dictionary(uniqueKeysWithValues: (0..<Revocations.usersMax).map { (Array("u\($0)".utf8), Int64(1)) })
        #expect(throws: PrincipalFault.self) { try revocations.add(many) }
        // Few users, whose file a start could not read.
        let long = (0..<30_000).map { (Array("\($0)".utf8) + [UInt8](repeating: 97, count: 500), Int64(1)) }
        #expect(throws: PrincipalFault.self) { try revocations.add(Dictionary(uniqueKeysWithValues: long)) }
        try expect(revocations.moments.count == 2 && Revocations(path).moments.count == 2)
    }
}
