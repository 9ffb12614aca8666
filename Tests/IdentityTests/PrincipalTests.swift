// The file of principals: what it may have, how it is changed, and what its credentials permit.

import Foundation
import TestSupport
import Testing

@testable import Identity

@Suite(.timeLimit(.minutes(20))) struct PrincipalTests {
    private let directory = TemporaryDirectory("hearth-principals")
    private var path: String { directory.path(of: "principals.json") }

    private let writer = PrincipalList.Grant(role: .writer, scope: Scope(projects: ["shop"]))
    private let admin = PrincipalList.Grant(role: .admin, scope: Scope(projects: nil))

    private func write(_ text: String, mode: Int = 0o600) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    private func authenticator() throws -> Authenticator {
        Authenticator(
            mode: .closed, users: TokenVerifier([]), principals: try Principals(PrincipalFile.read(path)),
            revocations: Revocations(), accessTokens: AccessTokens())
    }

    private func principal(_ key: String) throws -> ServicePrincipal? {
        guard
            case .service(let principal) = try authenticator().authenticate(
                authorization: "Bearer \(key)", now: present
            ).caller
        else { return nil }
        return principal
    }

    @Test
    func `A key is made, found by its text, listed without it, and revoked`() throws {
        let first = try PrincipalFile.edit(path) { list throws(PrincipalFault) in
            try list.addAPIKey(to: "backend", writer, now: present)
        }
        let second = try PrincipalFile.edit(path) { list throws(PrincipalFault) in
            try list.addAPIKey(to: "backend", writer, now: present + 1)
        }
        expect(first.hasPrefix("hearth_"))
        expectEqual(first.utf8.count, 67)
        expect(first != second)
        try expectEqual(principal(first)?.name, "backend")
        try expectEqual(principal(second)?.role, .writer)

        let text = try String(contentsOfFile: path, encoding: .utf8)
        expect(!text.contains(first.suffix(43)))
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        expectEqual(mode, 0o600)
        let records = try PrincipalFile.read(path)
        expectEqual(records.count, 1)
        expectEqual(records[0].apiKeys.map(\.createdAt), [present, present + 1])
        expectEqual(records[0].scope, Scope(projects: ["shop"]))
        expect(!records[0].bypassesRules)

        let identifier = records[0].apiKeys[0].identifier
        let isRevoked = try PrincipalFile.edit(path) { list in list.revoke(credential: identifier) }
        expect(isRevoked)
        #expect(throws: TokenError.unknownPrincipal) { try principal(first) }
        try expectEqual(principal(second)?.name, "backend")
        let isRemoved = try PrincipalFile.edit(path) { list in list.remove("backend") }
        expect(isRemoved)
        try expect(PrincipalFile.read(path).isEmpty)
        let isNothing = try PrincipalFile.edit(path) { list in list.revoke(credential: "none") }
        expect(!isNothing)
    }

    private func addKey(to name: String, in path: String) throws {
        _ = try PrincipalFile.edit(path) { list throws(PrincipalFault) in
            try list.addAPIKey(to: name, writer, now: present)
        }
    }

    @Test
    func `On a full disk a credential is revoked, again and again, and none is made`() throws {
        let disk = try TemporaryDisk(megabytes: 1)
        let path = disk.path(of: "principals.json")
        let names = (0..<10).map { "backend\($0)" }
        for name in names { try addKey(to: name, in: path) }
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
        expectEqual(size.map { $0 < 16 << 10 }, true)
        try disk.fill()
        #expect(throws: PrincipalFault.self) { try addKey(to: "late", in: path) }
        for (number, name) in names.enumerated() {
            let isRemoved = try PrincipalFile.edit(path, takesRights: true) { list in list.remove(name) }
            expect(isRemoved)
            try expectEqual(PrincipalFile.read(path).map(\.name), Array(names.dropFirst(number + 1)))
        }
    }

    @Test
    func `A symbolic link stays, and the file that it leads to is changed`() throws {
        let link = directory.path(of: "link.json")
        try addKey(to: "backend", in: path)
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        let isRemoved = try PrincipalFile.edit(link) { list in list.remove("backend") }
        expect(isRemoved)
        try expect(PrincipalFile.read(path).isEmpty)
        try expectEqual(FileManager.default.destinationOfSymbolicLink(atPath: link), path)
    }

    /// Root alone may give files away, and is who this is about.
    @Test
    func `A file of another user is refused with that user's name, to root too`() throws {
        try addKey(to: "backend", in: path)
        let other: uid_t = 65_534
        try #require(chown(path, other, other) == 0)
        let fault = #expect(throws: PrincipalFault.self) { try PrincipalFile.read(path) }
        expectEqual(fault?.description.contains("belongs to another user: run this as the user "), true)
    }

    @Test
    func `A changed secret, another identifier and other forms are refused`() throws {
        let key = try PrincipalFile.edit(path) { list throws(PrincipalFault) in
            try list.addAPIKey(to: "a", admin, now: present)
        }
        var changed = Array(key.utf8)
        changed[30] = changed[30] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        let wrong = [
            String(decoding: changed, as: UTF8.self), String(key.dropLast()), key + "A", "hearth_", "hearth__",
            key.uppercased(), "hearth_0000000000000000" + key.dropFirst(23),
        ]
        for key in wrong { #expect(throws: TokenError.self) { try principal(key) } }
        try expect(principal(key) != nil)
    }

    @Test(arguments: [0o644, 0o640, 0o660, 0o604, 0o602])
    func `A file that others may read, or no file, is refused`(mode: Int) throws {
        #expect(throws: PrincipalFault.self) { try PrincipalFile.read(path) }
        try write(#"{"principals":[]}"#)
        try expect(PrincipalFile.read(path).isEmpty)
        try write(#"{"principals":[]}"#, mode: mode)
        let error = #expect(throws: PrincipalFault.self) { try PrincipalFile.read(path) }
        expectEqual(error?.description.contains("chmod 600"), true)
        #expect(throws: PrincipalFault.self) { try PrincipalFile.edit(path) { _ in } }
        #expect(throws: PrincipalFault.self) { try PrincipalFile.read(directory.path) }
    }

    @Test
    func `Each mistake in the file has a message`() throws {
        let hash = String(repeating: "ab", count: 32)
        let good = #""name":"a","role":"reader","projects":["p"]"#
        let serviceKey = #"{"id":"k","publicKey":"x","created":1}"#
        let cases: [(String, String)] = [
            ("", "JSON"), ("[]", "not an object"), (#"{"principals":{}}"#, "not an array"),
            (#"{"principal":[]}"#, "unknown member 'principal'"), (#"{"principals":[1]}"#, "a principal's name"),
            (#"{"principals":[{"name":"a b","role":"admin","projects":["*"]}]}"#, "a principal's name"),
            (#"{"principals":[{"name":"a","role":"owner","projects":["*"]}]}"#, "admin, writer or reader"),
            (#"{"principals":[{"name":"a","role":"reader"}]}"#, "no 'projects'"),
            (#"{"principals":[{"name":"a","role":"reader","projects":[]}]}"#, "no 'projects'"),
            (#"{"principals":[{"name":"a","role":"reader","projects":"p"}]}"#, "not an array of texts"),
            (#"{"principals":[{"name":"a","role":"reader","projects":["p",1]}]}"#, "not an array of texts"),
            (#"{"principals":[{\#(good),"project":"p"}]}"#, "unknown member 'project'"),
            (#"{"principals":[{\#(good),"bypassesRules":1}]}"#, "not true or false"),
            (#"{"principals":[{\#(good),"name":"a"}]}"#, "twice"),
            (#"{"principals":[{\#(good)},{\#(good)}]}"#, "occurs twice"),
            (#"{"principals":[{"name":"a","role":"admin","projects":["p"],"collections":["c"]}]}"#, "an admin has no"),
            (#"{"principals":[{"name":"a","role":"admin","projects":["p"],"bypassesRules":false}]}"#, "bypasses rules"),
            (#"{"principals":[{\#(good),"certificates":["CN=a"]}]}"#, "URI:NAME"),
            (#"{"principals":[{\#(good),"certificates":["DNS:a","DNS:a"]}]}"#, "certificate of the principal 'a'"),
            (#"{"principals":[{\#(good),"apiKeys":[{"id":"1"}]}]}"#, "'sha256'"),
            (#"{"principals":[{\#(good),"apiKeys":[{"id":"1","sha256":"\#(hash)"}]}]}"#, "'created'"),
            (#"{"principals":[{\#(good),"apiKeys":[{"id":"1","sha256":"abcd","created":1}]}]}"#, "hexadecimal"),
            (
                #"{"principals":[{\#(good),"serviceAccount":{"email":"e","tokenURI":"u","keys":[\#(serviceKey)]}}]}"#,
                "PEM"
            ),
        ]
        for (text, reason) in cases {
            try write(text)
            let error = #expect(throws: PrincipalFault.self) { try Principals(PrincipalFile.read(path)) }
            expectEqual(error?.description.contains(reason), true, "\(String(describing: error)), expected: \(reason)")
        }
    }

    @Test
    func `What is written is read as the same records`() throws {
        let grant = PrincipalList.Grant(
            role: .reader, scope: Scope(projects: ["p", "q"], databases: ["(default)"], collections: ["users"]),
            bypassesRules: true)
        let written = try PrincipalFile.edit(path) { list throws(PrincipalFault) in
            _ = try list.addAPIKey(to: "a", grant, now: present)
            try list.addCertificate("URI:spiffe://a/b", to: "a", grant)
            _ = try list.addServiceKey(to: "b", admin, url: "https://h", project: "p", now: present)
            return list.records
        }
        try expectEqual(PrincipalFile.read(path), written)
        expectNil(written[1].scope.projects)
    }

    @Test
    func `A change that the server would refuse is not written, and rights are not changed in passing`() throws {
        _ = try PrincipalFile.edit(path) { list throws(PrincipalFault) in
            try list.addAPIKey(to: "a", writer, now: present)
        }
        let before = try String(contentsOfFile: path, encoding: .utf8)
        for number in 0..<5 {
            #expect(throws: PrincipalFault.self) {
                try PrincipalFile.edit(path) { list throws(PrincipalFault) in try change(number, &list) }
            }
            try expectEqual(String(contentsOfFile: path, encoding: .utf8), before)
        }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), ["principals.json"])
    }

    /// Changes that are refused.
    private func change(_ number: Int, _ list: inout PrincipalList) throws(PrincipalFault) {
        switch number {
        case 0: _ = try list.addAPIKey(to: "a", admin, now: 1)
        case 1: _ = try list.addAPIKey(to: "a b", writer, now: 1)
        case 2: try list.addCertificate("CN=a", to: "a", writer)
        case 3:
            try list.addCertificate("DNS:a", to: "a", writer)
            try list.addCertificate("DNS:a", to: "b", writer)
        default: _ = try list.addServiceKey(to: "a", writer, url: "h", project: "p", now: 1)
        }
    }

    @Test
    func `Changes at the same time are all kept`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask { [path, writer] in
                    _ = try PrincipalFile.edit(path) { list throws(PrincipalFault) in
                        try list.addAPIKey(to: "p\(number)", writer, now: present)
                    }
                }
            }
            try await group.waitForAll()
        }
        try expectEqual(Set(PrincipalFile.read(path).map(\.name)), Set((0..<8).map { "p\($0)" }))
    }

    @Test
    func `A role permits what it permits, within its scope`() {
        let scope = Scope(projects: ["p"], databases: ["(default)"], collections: ["users"])
        let all = Scope(projects: nil)
        let cases: [(Role, Scope, Access, String, String, String?, Bool)] = [
            (.reader, scope, .read, "p", "(default)", "users", true),
            (.reader, scope, .write, "p", "(default)", "users", false),
            (.reader, scope, .read, "q", "(default)", "users", false),
            (.reader, scope, .read, "p", "other", "users", false),
            (.reader, scope, .read, "p", "(default)", "orders", false),
            (.reader, scope, .read, "p", "(default)", nil, false),
            (.writer, scope, .write, "p", "(default)", "users", true),
            (.writer, scope, .administer, "p", "(default)", "users", false),
            (.writer, all, .write, "x", "y", nil, true), (.writer, all, .administer, "x", "y", nil, false),
            (.admin, all, .administer, "x", "y", nil, true),
            (.admin, Scope(projects: ["p"]), .administer, "q", "(default)", nil, false),
        ]
        for (role, scope, access, project, database, collection, expected) in cases {
            let principal = ServicePrincipal(name: "a", role: role, scope: scope, bypassesRules: false)
            expectEqual(
                principal.allows(access, project: project, database: database, collection: collection), expected,
                "\(role) \(access) \(project) \(database) \(collection ?? "-")")
            expectEqual(principal.bypassesRules, role == .admin)
            expectEqual(principal.administersServer, role == .admin && scope == all)
        }
    }
}
