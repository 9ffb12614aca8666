// What a server keeps about identity beside its data.

import Foundation
import TestSupport
import Testing

@testable import Identity

@Suite(.timeLimit(.minutes(20))) struct IdentityDirectoryTests {
    private let directory = TemporaryDirectory("hearth-identity")

    private func permissions(_ name: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: directory.path(of: name))[.posixPermissions] as? Int
    }

    @Test
    func `Revocations are read without making anything`() throws {
        let identity = IdentityDirectory(dataDirectory: directory.path(of: "data"))
        try expectEqual(identity.revocations().version, 0)
        expect(!FileManager.default.fileExists(atPath: directory.path(of: "data")))
        try identity.create()
        try identity.revocations().revoke(uid: "ada", before: 1)
        try expectEqual(permissions("data/identity"), 0o700)
        try expectEqual(permissions("data/identity/revocations.json"), 0o600)
    }

    @Test
    func `Files that cannot be looked at are not taken for missing ones`() throws {
        let identity = IdentityDirectory(dataDirectory: directory.path(of: "data"))
        try identity.create()
        try identity.revocations().revoke(uid: "ada", before: 100)
        let token = Array(try identity.accessTokens().token(keyIdentifier: "k", now: 0).utf8)
        let manager = FileManager.default
        // A link to itself stands for a disk that does not answer.
        for name in ["revocations.json", "access-token-secret"] {
            let path = directory.path(of: "data/identity/\(name)")
            try manager.moveItem(atPath: path, toPath: path + "-kept")
            try manager.createSymbolicLink(atPath: path, withDestinationPath: path)
        }
        #expect(throws: PrincipalFault.self) { try identity.revocations() }
        #expect(throws: PrincipalFault.self) { try identity.accessTokens() }
        for name in ["revocations.json", "access-token-secret"] {
            let path = directory.path(of: "data/identity/\(name)")
            try manager.removeItem(atPath: path)
            try manager.moveItem(atPath: path + "-kept", toPath: path)
        }
        try expect(identity.revocations().isRevoked(uid: "ada", signedInAt: 99))
        try expectEqual(identity.accessTokens().read(token, now: 1).key, .serviceAccount("k"))
    }

    @Test
    func `The secret of access tokens is made once, in a private file`() throws {
        let identity = IdentityDirectory(dataDirectory: directory.path(of: "data"))
        let token = Array(try identity.accessTokens().token(keyIdentifier: "k", now: 0).utf8)
        try expectEqual(identity.accessTokens().read(token, now: 1).key, .serviceAccount("k"))
        let path = directory.path(of: "data/identity/access-token-secret")
        try expectEqual(permissions("data/identity/access-token-secret"), 0o600)
        try expectEqual(Data(contentsOf: URL(fileURLWithPath: path)).count, 65)

        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        #expect(throws: PrincipalFault.self) { try identity.accessTokens() }
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        for text in ["", "00", String(repeating: "0", count: 63) + "x"] {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            let fault = #expect(throws: PrincipalFault.self) { try identity.accessTokens() }
            expectEqual(fault?.description.contains("is damaged"), true)
        }
        // That of others takes its place, and the same again is not written.
        let common = [UInt8](repeating: 7, count: 32)
        try identity.keep(accessTokenSecret: common)
        let inode = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int
        try identity.keep(accessTokenSecret: common)
        try expect(FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int == inode)
        let shared = Array(AccessTokens(secret: common).token(keyIdentifier: "k", now: 0).utf8)
        try expectEqual(identity.accessTokens().read(shared, now: 1).key, .serviceAccount("k"))
        #expect(throws: PrincipalFault.self) { try identity.keep(accessTokenSecret: [7]) }
        #expect(throws: TokenError.unknownPrincipal) { try identity.accessTokens().read(token, now: 1) }

        try FileManager.default.removeItem(atPath: path)
        let other = try identity.accessTokens()
        #expect(throws: TokenError.unknownPrincipal) { try other.read(token, now: 1) }
    }
}
