internal import Basics
internal import DocumentJSON

/// A new key of a service account, with the file that official SDKs read.
struct ServiceAccountKey {
    let email: String
    let tokenURI: String
    /// JSON in Google's form. Secret.
    let file: String
    let record: ServiceKeyRecord

    /// - Parameter url: `https://HOST`, with a port if need be.
    init(name: String, url: String, project: String, now: Int64) throws(KeyFault) {
        var base = url[...]
        while base.hasSuffix("/") { base = base.dropLast() }
        guard base.hasPrefix("https://") || base.hasPrefix("http://"), base.utf8.count > 8 else {
            throw KeyFault("the URL of the server is not https://HOST")
        }
        guard !project.isEmpty else { throw KeyFault("a service account needs a project") }
        let key = try SigningKey.generateRSA()
        let identifier = Hexadecimal.text(randomSecret(byteCount: 20).byteSpan)
        email = "\(name)@\(project).iam.hearth"
        tokenURI = "\(base)/token"
        record = ServiceKeyRecord(identifier: identifier, publicKey: key.verification.pem, createdAt: now)
        // SDKs expect a number.
        let client = randomSecret(byteCount: 8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        file =
            JSONValue.object([
                "type": .string("service_account"), "project_id": .string(project),
                "private_key_id": .string(identifier), "private_key": .string(key.privatePEM),
                "client_email": .string(email), "client_id": .string(String(client)),
                "auth_uri": .string("\(base)/auth"), "token_uri": .string(tokenURI),
                "universe_domain": .string("googleapis.com"),
            ]).jsonLines
    }
}
