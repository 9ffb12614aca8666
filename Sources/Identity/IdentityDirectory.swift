internal import Basics
internal import FileSystem
internal import Storage

/// What a server keeps about identity beside its data: a directory that its owner alone may enter, with the secret of
/// access tokens and the revocations of users.
package struct IdentityDirectory: Sendable {
    private let path: String

    package init(dataDirectory: String) { path = "\(dataDirectory)/identity" }

    /// The revocations; none while there is no file.
    ///
    /// - Throws: `PrincipalFault` if the file is damaged or others may read it.
    package func revocations() throws(PrincipalFault) -> Revocations { try Revocations("\(path)/revocations.json") }

    /// Makes the directory if there is none. The data directory is made too.
    package func create() throws(PrincipalFault) {
        do throws(StorageError) {
            try Directory.create(path)
        } catch {
            throw PrincipalFault("\(error)")
        }
    }

    /// Access tokens by a secret that outlasts the process. The first call makes the secret.
    ///
    /// - Throws: `PrincipalFault` if the file is damaged, others may read it, or it cannot be made.
    package func accessTokens() throws(PrincipalFault) -> AccessTokens {
        try create()
        let file = "\(path)/access-token-secret"
        do {
            return AccessTokens(
                secret: try SmallFile.locked(besides: file) {
                    if !Directory.exists(file) {
                        let text = Hexadecimal.text(randomSecret(byteCount: AccessTokens.secretBytes).byteSpan)
                        try SmallFile.replace(file, "\(text)\n")
                    }
                    return try Self.secret(file)
                })
        } catch let fault as PrincipalFault {
            throw fault
        } catch {
            throw PrincipalFault("\(error)")
        }
    }

    private static func secret(_ file: String) throws -> [UInt8] {
        let text = try SmallFile.read(file, bytesMax: 1024, isPrivate: true)
        let digits = String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        guard let secret = Hexadecimal.bytes(digits), secret.count == AccessTokens.secretBytes else {
            throw PrincipalFault("\(file) is damaged: it has not \(AccessTokens.secretBytes * 2) hexadecimal digits")
        }
        return secret
    }
}
