// Users whose tokens real servers verify.

import Foundation
import TLSTestSupport
import TestSupport
import Testing

/// An issuer of tokens, with rules that let its users read, and a principal of servers that administers others.
struct SignedInUsers {
    /// Flags of servers that know the users and the principal.
    let flags: [String]
    /// The key of the principal, as servers show it to each other.
    let environment: [String: String]
    private let keyFile: String
    private static let issuer = "https://securetoken.google.com/hearth"

    /// - Parameter directory: for keys, rules and principals.
    init(_ directory: TemporaryDirectory) throws {
        let (key, principals, rules) = (
            TestKey(), directory.path(of: "p.json"), directory.path(of: "firestore.rules")
        )
        keyFile = directory.path(of: "k.key")
        try FileManager.default.createDirectory(
            atPath: directory.path(of: "keys"), withIntermediateDirectories: true)
        try Data(key.publicPEM).write(to: URL(fileURLWithPath: directory.path(of: "keys/k.pem")))
        try Data(key.privatePEM).write(to: URL(fileURLWithPath: keyFile))
        let text =
            "service cloud.firestore { match /databases/{d}/documents/{p=**} { allow read: if request.auth != null; } }"
        try Data(text.utf8).write(to: URL(fileURLWithPath: rules))
        let made = try HearthBinary.run(
            [
                "token", "create", "servers", "--principals", principals, "--role", "admin", "--project", "*",
                "--api-key",
            ])
        environment = ["HEARTH_FOLLOW_TOKEN": String(made.output.dropLast())]
        flags = [
            "--rules", rules, "--principals", principals, "--token-issuer", Self.issuer, "--token-keys",
            directory.path(of: "keys"),
        ]
    }

    /// A token of a user who has signed in some seconds ago.
    func token(_ uid: String, secondsAgo: Int = 60) throws -> String {
        let signedIn = Int(Date().timeIntervalSince1970) - secondsAgo
        let minted = try HearthBinary.run([
            "token", "mint", "--uid", uid, "--key", keyFile, "--issuer", Self.issuer, "--claims",
            "{\"auth_time\":\(signedIn)}",
        ])
        try #require(minted.status == 0, "\(minted)")
        return String(minted.output.dropLast())
    }

    /// What a server replies to a caller who reads a document that does not exist: 404, or 401 if the token is refused.
    static func status(_ token: String, port: Int, host: String = TestHost.local.address) -> Int? {
        HTTPTestClient(ifListening: port, address: host, patienceSeconds: 20)?
            .request(
                "GET", "/v1/projects/hearth/databases/(default)/documents/c/d",
                headers: ["Authorization: Bearer \(token)"])?.status
    }
}
