// `hearth token mint`: tokens as an issuer would sign them, for tests of applications.

import DocumentJSON
import Identity

/// Mints tokens of users.
enum TokenMinting {
    private static let uid = Flag<String>("uid", "UID", required: false, help: "The user: the claim sub.")
    private static let claims = Flag(
        "claims", "JSON", default: "{}",
        help: "Further claims; they replace those that the other flags make.")
    private static let key = Flag<String>(
        "key", "FILE", required: false, help: "The private key of the issuer, PEM, without a password.")
    private static let keyIdentifier = Flag<String>(
        "key-id", "ID", required: false,
        help: "The token's kid. Without the flag it is the name of --key without its ending.")
    private static let issuer = Flag<String>(
        "issuer", "ISSUER", required: false, help: "The claim iss: --token-issuer of the server.")
    private static let audience = Flag<String>(
        "audience", "ID", required: false,
        help: "The claim aud. Without the flag it is the project of a Firebase issuer.")
    private static let lifetime = Flag(
        "lifetime", "TIME", default: TimeSpan.seconds(3600), in: .seconds(1)...TimeSpan.seconds(366 * 86_400),
        help: "How long the token is valid.")

    static let flags: [any FlagDeclaration] = [uid, claims, key, keyIdentifier, issuer, audience, lifetime]

    static func run(_ arguments: ParsedArguments) throws {
        let file = try required(key, arguments)
        let values = try claims(arguments, now: TokenCommand.now)
        let pem = try InputFile.secret("the private key", in: file)
        let signing: SigningKey
        do throws(KeyFault) {
            signing = try SigningKey(pem: pem)
        } catch {
            throw CommandFailure("\(file): \(error)")
        }
        let identifier = arguments.value(of: keyIdentifier) ?? stem(of: file)
        guard let token = TokenMint.token(values, key: signing, keyIdentifier: identifier) else {
            throw CommandFailure("OpenSSL cannot sign with the key in \(file)")
        }
        let output = try SecretOutput(arguments.value(of: TokenCommand.output))
        do {
            try output.write("\(token)\n")
        } catch {
            output.remove()
            throw error
        }
    }

    private static func required(_ flag: Flag<String>, _ arguments: ParsedArguments) throws(UsageError) -> String {
        guard let value = arguments.value(of: flag) else {
            throw UsageError(message: "missing --\(flag.name) \(flag.placeholder)")
        }
        return value
    }

    private static func stem(of file: String) -> String {
        let name = file.split(separator: "/").last ?? ""
        return String(name.lastIndex(of: ".").map { name[..<$0] } ?? name)
    }

    private static func claims(_ arguments: ParsedArguments, now: Int64) throws -> JSONValue {
        let (uid, issuer) = (try required(uid, arguments), try required(issuer, arguments))
        let project = IssuerSettings.firebaseProject(issuer)
        guard let audience = arguments.value(of: audience) ?? project else {
            throw UsageError(message: "missing --audience ID")
        }
        var values: [String: JSONValue] = [
            "iss": .string(issuer), "aud": .string(audience), "sub": .string(uid), "iat": .integer(now),
            "auth_time": .integer(now), "exp": .integer(now + Int64(arguments[lifetime].milliseconds / 1_000)),
        ]
        if project != nil { values["user_id"] = .string(uid) }
        guard case .object(let further)? = try? JSONValue.read(Array(arguments[claims].utf8)) else {
            throw CommandFailure("--claims is not a JSON object whose names occur once")
        }
        return .object(values.merging(further) { $1 })
    }
}
