// `hearth token`: the file of principals, revocations of users, minted tokens.

import DocumentJSON
import Foundation
import Identity
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct TokenCommandTests {
    private let directory = TemporaryDirectory("token")
    private var principals: String { directory.path(of: "principals.json") }

    private func token(_ words: String...) throws -> HearthBinary.Outcome { try HearthBinary.run(["token"] + words) }

    /// `token create NAME` with a role and a project.
    private func create(_ name: String, _ flags: String...) throws -> HearthBinary.Outcome {
        let grant = ["--principals", principals, "--role", "writer", "--project", "shop"]
        return try HearthBinary.run(["token", "create", name] + grant + flags)
    }

    private func permissions(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    private func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

    @Test
    func `An API key is printed once, works, is listed without its secret and revoked`() throws {
        let made = try create("backend", "--api-key", "--collection", "orders", "--bypass-rules")
        expect(made.status == 0 && made.output.hasPrefix("hearth_") && made.output.hasSuffix("\n"), "\(made.errors)")
        let key = made.output.dropLast()
        let parts = key.split(separator: "_", maxSplits: 2).map(String.init)
        expectEqual(parts.count, 3)
        try expectEqual(permissions(principals), 0o600)
        try expect(!text(principals).contains(parts[2]) && !made.errors.contains(parts[2]))
        let records = try PrincipalFile.read(principals)
        expectEqual(records.map(\.scope), [Scope(projects: ["shop"], collections: ["orders"])])
        let authenticator = Authenticator(
            mode: .closed, users: TokenVerifier([]), principals: try Principals(records), revocations: Revocations(),
            accessTokens: AccessTokens())
        let caller = try authenticator.authenticate(bearer: Array(key.utf8), now: 0).caller
        expectEqual(caller.name, "backend")

        let list = try token("list", "--principals", principals).output
        let head = "backend: writer, projects shop, databases *, collections orders, bypasses rules\n"
        expect(list.hasPrefix("\(head)  API key \(parts[1]), made 2"), "\(list)")
        expect(!list.contains(parts[2]))
        try expectEqual(token("revoke", parts[1], "--principals", principals).status, 0)
        try expectEqual(PrincipalFile.read(principals), [])
    }

    @Test
    func `A service account's key goes to a new private file, and signs tokens that are accepted`() throws {
        let file = directory.path(of: "key.json")
        let flags = ["--service-account", "--url", "https://db.example/", "--out", file]
        let made = try create("functions", flags[0], flags[1], flags[2], flags[3], flags[4])
        expect(made.status == 0 && made.output.isEmpty, "\(made.errors)")
        try expectEqual(permissions(file), 0o600)
        let key = try JSONValue.read(Array(try text(file).utf8))
        expect(key["token_uri"] == .string("https://db.example/token") && key["project_id"] == .string("shop"))
        let pem = try #require(key["private_key"]?.text)
        try expect(!text(principals).contains("PRIVATE") && !made.errors.contains("PRIVATE"))
        let email = try #require(key["client_email"])
        let claims: [String: JSONValue] = [
            "iss": email, "sub": email, "aud": .string("https://firestore.googleapis.com/"), "iat": .integer(0),
            "exp": .integer(3600),
        ]
        let signed = TokenMint.token(
            .object(claims), key: try SigningKey(pem: Array(pem.utf8)), keyIdentifier: key["private_key_id"]?.text)
        let authenticator = Authenticator(
            mode: .closed, users: TokenVerifier([]), principals: try Principals(try PrincipalFile.read(principals)),
            revocations: Revocations(), accessTokens: AccessTokens())
        let caller = try authenticator.authenticate(bearer: Array(try #require(signed).utf8), now: 10).caller
        expectEqual(caller.name, "functions")

        // The file that exists stays, and no credential is made.
        let before = try text(principals)
        let again = try create("functions", flags[0], flags[1], flags[2], flags[3], flags[4])
        expect(again.status == 1 && again.errors.contains(file), "\(again.errors)")
        try expectEqual(text(principals), before)
        let refused = try create("other name", "--api-key", "--out", directory.path(of: "none"))
        expect(refused.status == 1 && refused.errors.contains("1 to 100 letters"), "\(refused.errors)")
        expect(!FileManager.default.fileExists(atPath: directory.path(of: "none")))
    }

    @Test
    func `No credential is made whose secret cannot be written`() throws {
        try expectEqual(create("first", "--api-key").status, 0)
        let before = try text(principals)
        let service = "--service-account --url https://db.example"
        for (flags, output) in [("--api-key", ">/dev/full"), (service, ">/dev/full"), ("--api-key", ">&-")] {
            let command =
                #""$0" token create a --principals "$1" --role writer --project shop \#(flags) \#(output)"#
            let outcome = try HearthBinary.run(["-c", command, HearthBinary.path, principals], executable: "/bin/sh")
            expectEqual(outcome.status, 1, "\(command)")
            expect(outcome.errors.hasPrefix("hearth: cannot write to standard output: "), "\(outcome.errors)")
            try expectEqual(text(principals), before, "\(command)")
        }
    }

    @Test
    func `A certificate's name is mapped; a principal is revoked with all its credentials`() throws {
        try expectEqual(create("job", "--certificate", "URI:spiffe://a/b").status, 0)
        try expectEqual(create("job", "--api-key").status, 0)
        try expect(token("list", "--principals", principals).output.contains("\n  certificate URI:spiffe://a/b\n"))
        try expectEqual(token("revoke", "job", "--principals", principals).status, 0)
        try expectEqual(PrincipalFile.read(principals), [])
        let none = try token("revoke", "job", "--principals", principals)
        expect(none.status == 1 && none.errors.contains("\(principals) has no job"), "\(none.errors)")
    }

    @Test
    func `A file of principals that others may read is refused and left alone`() throws {
        try expectEqual(create("a", "--api-key").status, 0)
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: principals)
        let before = try text(principals)
        for words in [["list"], ["revoke", "a"], ["create", "b", "--role", "reader", "--project", "*", "--api-key"]] {
            let outcome = try HearthBinary.run(["token"] + words + ["--principals", principals])
            expect(outcome.status == 1 && outcome.errors.contains("chmod 600 \(principals)"), "\(outcome.errors)")
        }
        try expectEqual(text(principals), before)
    }

    @Test
    func `What is missing or contradicts itself is explained with status 2`() throws {
        let grant = ["--principals", principals, "--role", "admin", "--project", "*"]
        let cases: [([String], String)] = [
            (["burn"], "is not create, list, revoke, revoke-user or mint"), (["create"], "missing argument NAME"),
            (["list", "a"], "unexpected argument"), (["list"], "missing --principals FILE"),
            (["create", "a", "--principals", principals, "--role", "king"], "--role must be"),
            (["create", "a", "--principals", principals, "--role", "admin"], "missing --project ID"),
            (["create", "a"] + grant, "give one of --api-key"),
            (["create", "a", "--api-key", "--certificate", "DNS:x"] + grant, "give one of --api-key"),
            (["create", "a", "--service-account"] + grant, "needs --url"),
            (["create", "a", "--service-account", "--url", "https://h"] + grant, "names a project"),
            (["mint", "--uid", "u", "--issuer", "i"], "missing --key FILE"), (["mint", "--key", "k"], "missing --uid"),
            (["mint", "--key", "k", "--uid", "u"], "missing --issuer"),
            (["mint", "--key", "k", "--uid", "u", "--issuer", "i"], "missing --audience"),
        ]
        for (words, text) in cases {
            let outcome = try HearthBinary.run(["token"] + words)
            expect(outcome.status == 2 && outcome.errors.contains(text), "\(words): \(outcome.errors)")
        }
        expect(!FileManager.default.fileExists(atPath: principals))
    }

    @Test
    func `revoke-user needs a data directory and a plain identifier`() throws {
        let none = try token("revoke-user", "ada", "--data", directory.path(of: "none"))
        expect(none.status == 1 && none.errors.contains("is not a Hearth data directory"), "\(none.errors)")
        let long = try token("revoke-user", String(repeating: "x", count: 129), "--data", directory.path)
        expect(long.status == 1 && long.errors.contains("1 to 128 characters"), "\(long.errors)")
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), [])
    }

    @Test(.enabled(if: geteuid() == 0, "only root gives a directory to another user"))
    func `revoke-user makes no file that the server's user could not read`() throws {
        try Data().write(to: URL(fileURLWithPath: directory.path(of: "FORMAT")))
        expectEqual(chown(directory.path, 65_534, 65_534), 0)
        let outcome = try token("revoke-user", "ada", "--data", directory.path)
        expect(outcome.status == 1 && outcome.errors.contains("run this as the user that owns"), "\(outcome.errors)")
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), ["FORMAT"])
    }

    @Test
    func `Minting says what is wrong with the key and the claims, without a part of them`() throws {
        let file = directory.path(of: "key.pem")
        try Data("CANARY".utf8).write(to: URL(fileURLWithPath: file))
        let flags = ["--uid", "u", "--issuer", "https://securetoken.google.com/shop", "--key"]
        for (key, claims, text) in [
            (file, "{}", "has no private key in PEM"), ("/no/such.pem", "{}", "cannot read /no/such.pem"),
            (file, #"{"CANARY":1,"CANARY":2}"#, "--claims is not a JSON object"),
        ] {
            let outcome = try HearthBinary.run(["token", "mint"] + flags + [key, "--claims", claims])
            expect(outcome.status == 1 && outcome.errors.contains(text), "\(outcome.errors)")
            expect(!outcome.errors.contains("CANARY"))
        }
    }
}
