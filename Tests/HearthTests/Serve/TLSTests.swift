// `hearth serve` with TLS: the flags, the commands as clients, other programs as clients, reloads.

import Foundation
import TLSTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct TLSTests {
    private let directory = TemporaryDirectory("tls")
    private let authority = TestAuthority()

    private func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        let path = directory.path(of: name)
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    /// Writes the server's certificate and key, and returns the flags that name them.
    private func flags(_ names: [String] = ["IP:127.0.0.1", "DNS:localhost"]) throws -> [String] {
        let issued = authority.issue(names)
        return try [
            "--tls-cert", write("server.pem", issued.certificate), "--tls-key",
            write("server.key", issued.key.privatePEM),
        ]
    }

    private func serve(_ arguments: [String]) throws -> ServerProcess {
        try ServerProcess(data: directory.path(of: "data"), arguments: arguments + ["--insecure"])
    }

    @Test
    func `Commands load and read over TLS, and not without it`() throws {
        let server = try serve(flags())
        let ca = try write("ca.pem", authority.certificate)
        let lines = try write("lines.jsonl", Array(#"{"__name__":"a","n":7}"#.utf8))
        let address = ["--address", "127.0.0.1:\(server.port)"]
        let load = try HearthBinary.run(["load", "--quiet", "--collection", "c"] + address + ["--tls-ca", ca, lines])
        expectEqual(load.status, 0, "\(load.errors)")
        let get = try HearthBinary.run(["get", "c/a"] + address, environment: ["HEARTH_TLS_CA": ca])
        expect(get.status == 0 && get.output.contains("7"), "\(get.errors)")
        let plain = try HearthBinary.run(["get", "c/a", "--timeout", "1s"] + address)
        expect(plain.status == 1 && plain.errors.contains("this port requires TLS. Add --tls"), "\(plain.errors)")
        let system = try HearthBinary.run(["get", "c/a", "--tls", "--timeout", "1s"] + address)
        expect(system.status == 1 && system.errors.contains("--tls-ca FILE names the authority"), "\(system.errors)")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `curl reaches the server over HTTP/1.1 and HTTP/2, and plain text gets 400`() throws {
        let server = try serve(flags())
        let ca = try write("ca.pem", authority.certificate)
        let page = "localhost:\(server.port)/v1/projects/hearth/databases/(default)/documents/c"
        for version in ["--http1.1", "--http2"] {
            let outcome = try run(
                "curl", ["-s", "-g", version, "--cacert", ca, "-w", " %{http_code}", "https://\(page)"])
            expectEqual(outcome.output, "{}\n 200", "\(version): \(outcome.output) \(outcome.errors)")
        }
        let plain = try run("curl", ["-s", "-g", "-w", " %{http_code}", "http://\(page)"])
        expect(plain.output.contains("This port requires TLS.") && plain.output.hasSuffix(" 400"), "\(plain.output)")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `With --hsts every reply of HTTP over TLS asks for encrypted connections`() throws {
        let server = try serve(flags() + ["--hsts", "600"])
        let ca = try write("ca.pem", authority.certificate)
        let long = String(repeating: "a", count: 20_000)
        let channel = "/google.firestore.v1.Firestore/Write/channel?VER=8&RID=1"
        let requests: [(String, [String])] = [
            ("/livez", []), ("/none", []), ("/v1/projects/hearth/databases/(default)/documents/c", []),
            (channel, ["-d", "count=0"]), ("/v1/", ["-H", "X-Long: \(long)"]), ("/livez", ["-X", "PUT"]),
            ("/livez", ["-H", "Host: evil.example"]),
        ]
        for version in ["--http1.1", "--http2"] {
            for (path, more) in requests {
                let address = "https://localhost:\(server.port)\(path)"
                let outcome = try run(
                    "curl", ["-s", "-g", "-D", "-", "-o", "/dev/null", version, "--cacert", ca] + more + [address])
                let fields = outcome.output.lowercased().split(separator: "\r\n")
                expectEqual(fields.count { $0 == "strict-transport-security: max-age=600" }, 1, "\(version) \(path)")
            }
        }
        expectEqual(server.stop(), 0)
        let plain = try ServerProcess(data: directory.path(of: "data"), arguments: ["--hsts", "600"])
        let page = "http://localhost:\(plain.port)/livez"
        let reply = try run("curl", ["-s", "-D", "-", "-H", "X-Forwarded-Proto: https", page]).output
        expect(reply.contains("200 OK") && !reply.lowercased().contains("strict-transport"), "\(reply)")
        expectEqual(plain.stop(), 0)
    }

    @Test
    func `SIGHUP gives new connections another certificate; files that do not fit change nothing`() throws {
        let server = try serve(flags())
        let ca = try write("ca.pem", authority.certificate)
        let subject = { try run("curl", ["-sv", "--cacert", ca, "https://localhost:\(server.port)/"]).errors }
        try expect(!subject().contains("subject: CN=second"))
        let second = authority.issue(["DNS:localhost"], subject: "second")
        _ = try write("server.pem", second.certificate)
        server.process.signal(SIGHUP)
        expect(server.process.waitForError("event=reload_failed"))
        expect(server.process.errors.contains("the key does not belong to the certificate"))
        try expect(!subject().contains("subject: CN=second"))
        _ = try write("server.key", second.key.privatePEM)
        server.process.signal(SIGHUP)
        expect(server.process.waitForError("parts=tls"))
        try expect(subject().contains("subject: CN=second"))
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A certificate that expires soon, or has expired, is logged, and the metrics have its end`() throws {
        func flags(_ days: Int) throws -> [String] {
            let issued = authority.issue(["IP:127.0.0.1"], valid: -3600 * 24...86_400 * days + 3600)
            return try [
                "--tls-cert", write("server.pem", issued.certificate), "--tls-key",
                write("server.key", issued.key.privatePEM),
            ]
        }
        func daysLeft(_ server: ServerProcess) throws -> Double? {
            let page = try run("curl", ["-sk", "https://127.0.0.1:\(server.port)/metrics"]).output
            let prefix = "hearth_tls_certificate_expiry_seconds "
            let line = page.split(separator: "\n").first { $0.hasPrefix(prefix) }
            let end = line.flatMap { Double($0.dropFirst(prefix.count)) }
            return end.map { ($0 - Date().timeIntervalSince1970) / 86_400 }
        }
        let server = try serve(flags(30))
        try expectEqual(daysLeft(server).map { $0 > 29 && $0 < 31 }, true)
        expect(!server.process.errors.contains("event=certificate_expires"))
        _ = try flags(2)
        server.process.signal(SIGHUP)
        expect(server.process.waitForError("send SIGHUP before that"))
        try expectEqual(daysLeft(server).map { $0 > 1 && $0 < 3 }, true)
        _ = try flags(-1)
        server.process.signal(SIGHUP)
        expect(server.process.waitForError("clients refuse an expired certificate"))
        expectEqual(server.stop(), 0)
        let plain = try ServerProcess(data: directory.path(of: "data"))
        let page = try run("curl", ["-s", "http://127.0.0.1:\(plain.port)/metrics"]).output
        expect(page.contains("\nhearth_tls_certificate_expiry_seconds +Inf\n"))
        expectEqual(plain.stop(), 0)
    }

    @Test
    func `Certificates of clients and pages of every site exclude each other`() throws {
        let ca = try write("ca.pem", authority.certificate)
        let check =
            try ["serve", "--check-config", "--data", directory.path(of: "data"), "--tls-client-ca", ca] + flags()
        let refused = try HearthBinary.run(check + ["--allow-origin", "any"])
        expect(refused.status == 1 && refused.errors.contains("list the origins with --allow-origin"))
        let listed = try HearthBinary.run(check + ["--allow-origin", "https://app.example.org"])
        expectEqual(listed.status, 0, "\(listed.errors)")
    }

    @Test
    func `A private key that others may read is logged at the start`() throws {
        let flags = try flags()
        func isLogged(_ permissions: Int) throws -> Bool {
            let key = directory.path(of: "server.key")
            try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: key)
            let server = try serve(flags)
            expectEqual(server.stop(), 0)
            return server.process.errors.contains(" event=key_not_private path=\(key) ")
        }
        try expect(isLogged(0o644))
        try expect(isLogged(0o620))
        func isShown(_ command: [String]) throws -> Bool {
            let outcome = try HearthBinary.run(command)
            expectEqual(outcome.status, 0, "\(outcome.errors)")
            let key = directory.path(of: "server.key")
            let warning = "other users may read or change the private key: chmod 600 \(key)"
            return (outcome.output + outcome.errors).contains("warning: \(key) has mode 620: \(warning)")
        }
        let check = ["serve", "--check-config", "--data", directory.path(of: "data")] + flags
        let mint = [
            "token", "mint", "--uid", "ada", "--issuer", "https://securetoken.google.com/shop", "--key",
            directory.path(of: "server.key"),
        ]
        for command in [check, mint] { try expect(isShown(command)) }
        // Packages give keys to a group.
        try expect(!isLogged(0o640))
        try expect(!isLogged(0o600))
        for command in [check, mint] { try expect(!isShown(command)) }
    }

    @Test
    func `With --tls-client-ca a client needs a certificate of that authority`() throws {
        let clients = TestAuthority("clients")
        let server = try serve(flags() + ["--tls-client-ca", write("clients.pem", clients.certificate)])
        let issued = clients.issue(["URI:spiffe://tests/client"])
        let files = try [
            "--cert", write("client.pem", issued.certificate), "--key", write("client.key", issued.key.privatePEM),
        ]
        let page = "https://localhost:\(server.port)/v1/projects/hearth/databases/(default)/documents/c"
        let arguments = try ["-s", "-g", "--cacert", write("ca.pem", authority.certificate), page]
        try expectEqual(run("curl", files + arguments).output, "{}\n")
        try expect(run("curl", arguments).status != 0)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A revocation list that has expired refuses all clients of its authority, and is logged`() throws {
        let clients = TestAuthority("clients")
        func list(_ seconds: ClosedRange<Int>) throws -> String {
            try write("clients.crl", clients.revocationList([], valid: seconds))
        }
        let authorities = try ["--tls-client-ca", write("clients.pem", clients.certificate)]
        let server = try serve(flags() + authorities + ["--tls-client-crl", list(-60...30 * 86_400)])
        expect(!server.process.errors.contains("event=revocation_list_expires"))
        let issued = clients.issue(["URI:spiffe://tests/client"])
        let arguments = try [
            "-s", "-g", "--cacert", write("ca.pem", authority.certificate), "--cert",
            write("client.pem", issued.certificate), "--key", write("client.key", issued.key.privatePEM),
            "https://localhost:\(server.port)/metrics",
        ]
        let prefix = "hearth_tls_crl_expiry_seconds "
        let line = try run("curl", arguments).output.split(separator: "\n").first { $0.hasPrefix(prefix) }
        let end = try #require(line.flatMap { Double($0.dropFirst(prefix.count)) })
        expect(abs(end - Date().timeIntervalSince1970 - 30 * 86_400) < 86_400)
        _ = try list(-7200 ... -60)
        server.process.signal(SIGHUP)
        expect(server.process.waitForError("all certificates of clients of its authority are refused"))
        try expect(run("curl", arguments).status != 0)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `--tls-minimum 1.3 refuses TLS 1.2`() throws {
        let server = try serve(flags() + ["--tls-minimum", "1.3"])
        let arguments = try [
            "-s", "--cacert", write("ca.pem", authority.certificate), "https://localhost:\(server.port)/",
        ]
        try expect(run("curl", ["--tls-max", "1.2"] + arguments).status != 0)
        try expectEqual(run("curl", ["--tlsv1.3"] + arguments).status, 0)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Files that are missing or do not fit end the start with their names`() throws {
        let good = try flags()
        let cases: [(arguments: [String], text: String)] = [
            ([good[0], good[1]], "both --tls-cert and --tls-key"),
            ([good[0], good[1], "--tls-key", "/no/such.key"], "/no/such.key"),
            ([good[0], good[1], "--tls-key", try write("other.key", TestKey().privatePEM)], "does not belong"),
            ([good[0], try write("empty.pem", []), good[2], good[3]], "certificate"),
            (good + ["--tls-client-crl", good[1]], "--tls-client-ca"),
        ]
        for (arguments, text) in cases {
            let data = directory.path(of: "refused")
            let outcome = try HearthBinary.run(["serve", "--data", data, "--port", "0"] + arguments)
            expect(outcome.status == 1 && outcome.errors.contains(text), "\(arguments): \(outcome.errors)")
            expect(!FileManager.default.fileExists(atPath: data))
        }
    }

    private func run(_ program: String, _ arguments: [String]) throws -> HearthBinary.Outcome {
        try HearthBinary.run([program] + arguments, executable: "/usr/bin/env")
    }
}
