internal import Basics
package import FileSystem
internal import Storage

/// What a server keeps about identity beside its data: a directory that its owner alone may enter, with the secret of
/// access tokens and the revocations of users.
package struct IdentityDirectory: Sendable {
    private let path: String

    package init(dataDirectory: String) { path = "\(dataDirectory)/identity" }

    /// The revocations, with those that a state has brought which took its place in the directory; none while there is
    /// no file.
    ///
    /// - Parameter spareSpace: for revocations on a full disk.
    /// - Throws: `PrincipalFault` if the file is damaged or others may read it.
    package func revocations(spareSpace: SpareSpace = SpareSpace()) throws(PrincipalFault) -> Revocations {
        let file = "\(path)/revocations.json"
        let revocations = try Revocations(file, spareSpace: spareSpace)
        let placed = PlacedFile.path(besides: file)
        do {
            guard try Directory.isThere(placed) else { return revocations }
            try revocations.add(Revocations(placed).moments)
            try Directory.removeFile(placed)
        } catch let fault as PrincipalFault {
            throw fault
        } catch {
            throw PrincipalFault("\(error)")
        }
        return revocations
    }

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
        try changing { file in
            if try !Directory.isThere(file) { try Self.write(AccessTokens.makeSecret(), to: file) }
            return AccessTokens(secret: try Self.secret(file))
        }
    }

    /// Replaces the secret of access tokens, if it is another one. Those that were given by the one before are void.
    ///
    /// - Throws: `PrincipalFault` if it has another length, or cannot be written.
    package func keep(accessTokenSecret secret: [UInt8]) throws(PrincipalFault) {
        guard secret.count == AccessTokens.secretBytes else { throw PrincipalFault("the secret is damaged") }
        try changing { file in
            if (try? Self.secret(file)) != secret { try Self.write(secret, to: file) }
        }
    }

    /// Calls `body` with the file of the secret, while no other process changes it.
    private func changing<Output>(_ body: (_ file: String) throws -> Output) throws(PrincipalFault) -> Output {
        try create()
        let file = "\(path)/access-token-secret"
        do {
            return try SmallFile.locked(besides: file) { try body(file) }
        } catch let fault as PrincipalFault {
            throw fault
        } catch {
            throw PrincipalFault("\(error)")
        }
    }

    private static func write(_ secret: [UInt8], to file: String) throws {
        try SmallFile.replace(file, "\(Hexadecimal.text(secret.byteSpan))\n")
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
