// Security of `hearth serve`: what closes it, its files, reloads, the check of the configuration.

import DocumentJSON
import Foundation
import Identity
import TLSTestSupport
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20)))
struct ServeSecurityTests {
    private let directory = TemporaryDirectory("security")
    private let now = Int64(Date().timeIntervalSince1970)
    private static let firebase = "https://securetoken.google.com/shop"
    private static let provider = "https://id.example"
    private static let rules =
        "service cloud.firestore { match /databases/{d}/documents { match /{p=**} { allow read; } } }"

    private func write(_ name: String, _ text: String, permissions: Int = 0o600) throws -> String {
        let path = directory.path(of: name)
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: path)
        return path
    }

    /// Writes a new private key, and its public key into `folder`; both have the name `name`.
    private func writeKey(_ name: String, in folder: String) throws -> String {
        let key = TestKey()
        try FileManager.default.createDirectory(
            atPath: directory.path(of: folder), withIntermediateDirectories: true)
        _ = try write("\(folder)/\(name).pem", String(decoding: key.publicPEM, as: UTF8.self))
        return try write("\(name).key", String(decoding: key.privatePEM, as: UTF8.self))
    }

    private func make(_ words: [String], host: String = "127.0.0.1", data: String? = nil) throws -> ServeSecurity {
        let flags = ServeSettings.groups.flatMap(\.flags)
        let arguments = try ArgumentParser(flags: flags, words: [], environment: { _ in nil }).parse(words)
        return try ServeSecurity.make(
            arguments, host: host, hasCertificate: false, hasAllowedHosts: false,
            dataDirectory: data.map { directory.path(of: $0) }, log: ServeSettings.defaults.log)
    }

    private func mint(_ key: String, _ flags: String...) throws -> [UInt8] {
        let minted = try HearthBinary.run(["token", "mint", "--uid", "ada", "--key", key] + flags)
        expectEqual(minted.status, 0, "\(minted.errors)")
        return Array(minted.output.utf8.dropLast())
    }

    private func caller(_ token: [UInt8], _ security: ServeSecurity) throws(TokenError) -> Caller {
        try security.authenticator.authenticate(bearer: token, now: now).caller
    }

    // MARK: Open and closed

    @Test
    func `Off loopback a server needs a security setting, and the emulator's mode is refused`() throws {
        let data = directory.path(of: "data")
        let rules = try write("firestore.rules", Self.rules)
        let open = "other machines could read and write everything"
        let cases = [
            (["--host", "0.0.0.0"], open), (["--host", "::"], open), (["--host", "127.0.0.1.example"], open),
            (["--host", "0.0.0.0", "--emulator"], "--emulator accepts unsigned tokens"),
            (["--host", "::", "--emulator", "--rules", rules], "--emulator accepts unsigned tokens"),
        ]
        for (flags, text) in cases {
            let outcome = try HearthBinary.run(["serve", "--data", data, "--port", "0"] + flags)
            expect(outcome.status == 1 && outcome.errors.contains(text), "\(flags): \(outcome.errors)")
            expect(!FileManager.default.fileExists(atPath: data), "\(flags)")
        }
        let server = try ServerProcess(data: data, arguments: ["--host", "0.0.0.0", "--insecure"])
        expect(server.process.waitForError("security=insecure"))
        expect(server.process.waitForError("event=insecure"))
        expectEqual(server.stop(), 0)
    }

    @Test
    func `The mode follows from the flags`() throws {
        let rules = try write("firestore.rules", Self.rules)
        let cases: [([String], SecurityMode)] = [
            ([], .open), (["--rules", rules], .closed), (["--token-issuer", Self.firebase], .closed),
            (["--rules", rules, "--insecure"], .insecure), (["--rules", rules, "--emulator"], .emulator),
        ]
        for (flags, mode) in cases {
            let security = try make(flags)
            expect(security.mode == mode && security.authenticator.mode == mode, "\(flags)")
            expectEqual(security.ruleset == nil, !flags.contains("--rules"), "\(flags)")
        }
        for host in ["localhost", "127.1.2.3", "::1"] { try expectEqual(make([], host: host).mode, .open) }
    }

    @Test
    func `Flags that are missing or contradict each other are named`() throws {
        let key = try writeKey("k", in: "keys")
        let keys = directory.path(of: "keys")
        let details = ["--token-audience", "app", "--token-projects", "shop", "--token-keys", keys]
        func provider(without missing: String, _ more: String...) -> [String] {
            let pairs = stride(from: 0, to: details.count, by: 2).map { Array(details[$0..<($0 + 2)]) }
            return ["--token-issuer", Self.provider] + pairs.filter { $0[0] != missing }.flatMap { $0 } + more
        }
        func firebase(_ more: String...) -> [String] { ["--token-issuer", Self.firebase] + more }
        let two = ["--token-issuer", Self.provider, "--token-issuer", Self.firebase]
        let bad = try write("bad.rules", "service x")
        let cases: [([String], String)] = [
            (["--token-audience", "a"], "--token-audience needs --token-issuer"),
            (provider(without: "--token-audience"), "\(Self.provider) needs --token-audience"),
            (provider(without: "--token-keys"), "\(Self.provider) needs --token-keys"),
            (provider(without: "--token-projects"), "needs --token-projects"),
            (provider(without: "", "--token-projects", "a, "), "needs --token-projects"),
            (firebase("--token-audience", "app"), "follow from it: leave their flags out"),
            (firebase("--token-issuer", Self.firebase), "occurs twice"),
            (firebase("--token-keys", keys, "--token-keys", keys), "more than one --token-keys"),
            (firebase("--token-keys", "\(Self.firebase)="), "--token-keys has no value"),
            (two + details, "with several issuers, write --token-"),
            (firebase("--token-keys", "http://keys.example"), "is https://HOST/PATH"),
            (firebase("--token-keys", "https://a:CANARY@b"), "without a user name"),
            (firebase("--token-keys", "/no/such"), "/no/such"), (firebase("--token-keys", key), "a private key is not"),
            (firebase("--token-keys-ca", "/no/such.pem"), "cannot read /no/such.pem: No such file or directory"),
            (["--rules", "/no/such.rules"], "cannot read /no/such.rules"), (["--rules", bad], "\(bad) has errors\n"),
            (["--principals", "/no/such.json"], "/no/such.json"),
            (["--principals", try write("open.json", "{}", permissions: 0o644)], "chmod 600"),
        ]
        for (flags, text) in cases {
            let error = #expect(throws: CommandFailure.self, "\(flags)") { try make(flags, data: "none") }
            expectEqual(error?.description.contains(text), true, "\(flags): \(error?.description ?? "")")
            expectEqual(error?.description.contains("CANARY"), false)
        }
        // A start that is refused makes no file.
        expect(!FileManager.default.fileExists(atPath: directory.path(of: "none")))
    }

    // MARK: Tokens

    @Test
    func `Tokens of several issuers are verified, each with its keys, audience, projects and claim`() throws {
        let (first, second) = (try writeKey("first", in: "firebase"), try writeKey("second", in: "provider"))
        let security = try make([
            "--token-issuer", Self.firebase, "--token-issuer", Self.provider,
            "--token-keys", "\(Self.firebase)=\(directory.path(of: "firebase"))",
            "--token-keys", "\(Self.provider)=\(directory.path(of: "provider"))",
            "--token-audience", "\(Self.provider)=app", "--token-audience", "\(Self.provider)=other",
            "--token-projects", "\(Self.provider)=shop, blog", "--token-uid-claim", "\(Self.provider)=email",
        ])
        guard case .user(let ada) = try caller(mint(first, "--issuer", Self.firebase), security) else {
            throw CommandFailure("the caller is not a user")
        }
        expect(ada.uid == "ada" && ada.opens(project: "shop") && !ada.opens(project: "blog"))
        let claims = #"{"email":"eve@example.com"}"#
        let other = try mint(second, "--issuer", Self.provider, "--audience", "other", "--claims", claims)
        guard case .user(let eve) = try caller(other, security) else {
            throw CommandFailure("the caller is not a user")
        }
        expect(eve.uid == "eve@example.com" && eve.opens(project: "blog"))
        #expect(throws: TokenError.unknownKey) { try caller(mint(second, "--issuer", Self.firebase), security) }
        #expect(throws: TokenError.audience) {
            try caller(mint(first, "--issuer", Self.firebase, "--audience", "blog"), security)
        }
        #expect(throws: TokenError.expired) {
            try caller(mint(first, "--issuer", Self.firebase, "--claims", #"{"exp":1}"#), security)
        }
    }

    @Test
    func `A reload reads rules, principals and keys: all of them or none`() throws {
        let old = try writeKey("old", in: "keys")
        let rules = try write("firestore.rules", Self.rules)
        let principals = try write("principals.json", #"{"principals":[]}"#)
        let security = try make(
            [
                "--token-issuer", Self.firebase, "--token-keys", directory.path(of: "keys"), "--rules", rules,
                "--principals", principals,
            ], data: "data")
        let oldToken = try mint(old, "--issuer", Self.firebase)
        try expectEqual(caller(oldToken, security).name, "ada")

        let new = try writeKey("new", in: "keys")
        try FileManager.default.removeItem(atPath: directory.path(of: "keys/old.pem"))
        _ = try write("firestore.rules", Self.rules.replacing("allow read;", with: "allow read; allow write;"))
        _ = try write("principals.json", #"{"principals":[{}]}"#)
        #expect(throws: CommandFailure.self) { try security.reload() }
        let newToken = try mint(new, "--issuer", Self.firebase)
        expectEqual(security.ruleset?.statements.count, 1)
        try expectEqual(caller(oldToken, security).name, "ada")
        #expect(throws: TokenError.unknownKey) { try caller(newToken, security) }

        try FileManager.default.removeItem(atPath: principals)
        let made = try HearthBinary.run([
            "token", "create", "backend", "--principals", principals, "--role", "reader", "--project", "*", "--api-key",
        ])
        try security.reload()
        expectEqual(security.ruleset?.statements.count, 2)
        #expect(throws: TokenError.unknownKey) { try caller(oldToken, security) }
        try expectEqual(caller(newToken, security).name, "ada")
        try expectEqual(caller(Array(made.output.utf8.dropLast()), security).name, "backend")
    }

    @Test
    func `A revocation by another process is seen at the next tick, and by the next start`() throws {
        let key = try writeKey("k", in: "keys")
        let flags = ["--token-issuer", Self.firebase, "--token-keys", directory.path(of: "keys")]
        try FileManager.default.createDirectory(
            atPath: directory.path(of: "data"), withIntermediateDirectories: true)
        _ = try write("data/FORMAT", "")
        let security = try make(flags, data: "data")
        let token = try mint(key, "--issuer", Self.firebase, "--claims", #"{"auth_time":\#(now - 10)}"#)
        security.tick()
        try expectEqual(caller(token, security).name, "ada")
        let revoked = try HearthBinary.run(["token", "revoke-user", "ada", "--data", directory.path(of: "data")])
        expectEqual(revoked.status, 0, "\(revoked.errors)")
        security.tick()
        #expect(throws: TokenError.revoked) { try caller(token, security) }
        #expect(throws: TokenError.revoked) { try caller(token, make(flags, data: "data")) }
        // A file that is gone or damaged takes nothing back, and ends a start.
        let file = "data/identity/revocations.json"
        _ = try write(file, "{}")
        security.tick()
        #expect(throws: TokenError.revoked) { try caller(token, security) }
        #expect(throws: CommandFailure.self) { try security.reload() }
        #expect(throws: CommandFailure.self) { try make(flags, data: "data") }
        try FileManager.default.removeItem(atPath: directory.path(of: file))
        security.tick()
        #expect(throws: TokenError.revoked) { try caller(token, security) }
    }

    @Test
    func `The secret of access tokens is made once, is private and outlasts the process`() throws {
        let (principals, file) = (directory.path(of: "principals.json"), directory.path(of: "key.json"))
        let made = try HearthBinary.run([
            "token", "create", "sdk", "--principals", principals, "--role", "reader", "--project", "shop",
            "--service-account", "--url", "https://h", "--out", file,
        ])
        expectEqual(made.status, 0, "\(made.errors)")
        let key = try JSONValue.read(Array(try Data(contentsOf: URL(fileURLWithPath: file))))
        let claims: [String: JSONValue] = [
            "iss": key["client_email"] ?? .null, "aud": .string("https://h/token"), "iat": .integer(now),
            "exp": .integer(now + 60),
        ]
        let assertion = try #require(
            TokenMint.token(
                .object(claims), key: try SigningKey(pem: Array((key["private_key"]?.text ?? "").utf8)),
                keyIdentifier: key["private_key_id"]?.text))
        let flags = ["--principals", principals]
        let access = try make(flags, data: "data").authenticator.exchange(
            grantType: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion: Array(assertion.utf8), now: now)
        try expectEqual(caller(Array(access.token.utf8), make(flags, data: "data")).name, "sdk")
        #expect(throws: TokenError.unknownPrincipal) {
            try caller(Array(access.token.utf8), make(flags, data: "other"))
        }
        let secret = "data/identity/access-token-secret"
        let attributes = try FileManager.default.attributesOfItem(atPath: directory.path(of: secret))
        expect(attributes[.posixPermissions] as? Int == 0o600)
        _ = try write(secret, "CANARY")
        let error = #expect(throws: CommandFailure.self) { try make(flags, data: "data") }
        expectEqual(error?.description.hasSuffix("is damaged: it has not 64 hexadecimal digits"), true)
    }

    // MARK: The process

    @Test
    func `--check-config prints the settings and who may do what, and makes nothing`() throws {
        let data = directory.path(of: "data")
        let rules = try write("firestore.rules", Self.rules)
        let outcome = try HearthBinary.run([
            "serve", "--check-config", "--data", data, "--host", "0.0.0.0", "--rules", rules, "--token-issuer",
            Self.firebase, "--token-keys", "https://keys.example/a?key=CANARY", "--principals",
            try write("principals.json", #"{"principals":[]}"#),
        ])
        expect(outcome.status == 0 && !outcome.output.contains("CANARY"), "\(outcome.errors)")
        for line in [
            "security: closed", "  users: health yes, documents by the rules, observation no, administration no",
            "rules: \(rules), 1 allow statements", "keys: https://keys.example/a?…",
            "issuer: \(Self.firebase), audience shop, projects shop, user in sub", "tls: off", "  --host 0.0.0.0",
            "  --token-keys https://keys.example/a?…", "  --port 8080",
        ] {
            expect(outcome.output.split(separator: "\n").contains { $0 == line }, "\(line)\n\(outcome.output)")
        }
        let refused = try HearthBinary.run(["serve", "--check-config", "--data", data, "--host", "0.0.0.0"])
        expect(refused.status == 1 && refused.output.isEmpty, "\(refused.output)")
        expect(!FileManager.default.fileExists(atPath: data))
    }

    @Test
    func `A data directory in which others may write is logged at the start`() throws {
        let data = directory.path(of: "data")
        func lines(_ permissions: Int) throws -> Int {
            try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
            try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: data)
            let server = try ServerProcess(data: data)
            expectEqual(server.stop(), 0)
            return server.process.errors.split(separator: "\n").count { $0.contains(" event=data_not_private ") }
        }
        for permissions in [0o777, 0o770, 0o702] { try expectEqual(lines(permissions), 1) }
        for permissions in [0o755, 0o700] { try expectEqual(lines(permissions), 0) }
        for (permissions, warns) in [(0o702, true), (0o700, false)] {
            try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: data)
            let checked = try HearthBinary.run(["serve", "--check-config", "--data", data, "--port", "0"])
            expectEqual(checked.output.contains("\nwarning: \(data) has mode 702: other users may write"), warns)
        }
    }

    @Test
    func `A server reads its files on SIGHUP, fetches keys, and logs no secret`() throws {
        let principals = directory.path(of: "principals.json")
        let made = try HearthBinary.run([
            "token", "create", "a", "--principals", principals, "--role", "reader", "--project", "*", "--api-key",
        ])
        let secret = try #require(made.output.dropLast().split(separator: "_").last)
        let rules = try write("firestore.rules", Self.rules)
        let server = try ServerProcess(
            data: directory.path(of: "data"),
            arguments: [
                "--principals", principals, "--rules", rules, "--token-issuer", Self.firebase, "--token-keys",
                "https://127.0.0.1:1/keys?key=CANARY", "--log-level", "debug",
            ])
        expect(server.process.waitForError("event=keys_not_fetched url=https://127.0.0.1:1/keys?… message="))
        server.process.signal(SIGHUP)
        expect(server.process.waitForError("event=reloaded parts=security"))
        let key = #"{"id":"i","sha256":"\#(secret)","created":1}"#
        let record = #"{"name":"a","role":"reader","projects":["*"],"apiKeys":[\#(key)]}"#
        _ = try write("principals.json", #"{"principals":[\#(record)]}"#)
        server.process.signal(SIGHUP)
        expect(server.process.waitForError("event=reload_failed part=security"))
        let identity = directory.path(of: "data/identity/access-token-secret")
        let kept = try String(contentsOfFile: identity, encoding: .utf8).dropLast()
        expectEqual(server.stop(), 0)
        for canary in [String(secret), String(kept), "key=CANARY"] {
            expect(!server.process.errors.contains(canary) && !server.process.output.contains(canary))
        }
    }
}
