// The issuers of users' tokens as the flags of `hearth serve` describe them.

import Identity
import KeyFetching

/// One issuer: Firebase Authentication of a project, or another OpenID provider.
struct IssuerSettings: Sendable {
    static let issuer = Flag<String>(
        repeatable: "token-issuer", "ISSUER",
        help: """
            Accepts tokens whose iss is ISSUER. For https://securetoken.google.com/PROJECT (Firebase) the audience, \
            the project and Google's keys follow from it; another provider needs --token-audience, --token-projects \
            and --token-keys. With several issuers each of these values is written ISSUER=VALUE.
            """)
    static let audience = Flag<String>(
        repeatable: "token-audience", "ID", help: "What the aud of a token is, or has: the client id of your app.")
    static let projectList = Flag<String>(
        repeatable: "token-projects", "IDS",
        help: "Projects that users of the issuer may reach if rules permit it, separated by commas.")
    static let keySource = Flag<String>(
        repeatable: "token-keys", "SOURCE",
        help: """
            The issuer's public keys: a file, a directory of files, or an https URL that is fetched again when its \
            Cache-Control has passed. A JSON Web Key Set, Google's object of certificates, or PEM.
            """)
    static let uidClaim = Flag<String>(
        repeatable: "token-uid-claim", "NAME", help: "The claim that is the user's identifier, if it is not sub.")
    static let keyAuthorities = Flag<String>(
        "token-keys-ca", "FILE", required: false,
        help: "Authorities of the certificates of --token-keys URLs, PEM, instead of those of the system.")

    private static let details = [audience, projectList, keySource, uidClaim]
    static let flags: [any FlagDeclaration] = [issuer, audience, projectList, keySource, uidClaim, keyAuthorities]

    /// Where keys come from.
    enum Source: Equatable, Sendable {
        case url(KeyURL)
        /// Of a file or a directory.
        case path(String)
    }

    let name: String
    let audiences: [String]
    let projects: [String]
    let userClaim: String
    let isFirebase: Bool
    let source: Source

    /// The issuers of a command line.
    ///
    /// - Throws: `CommandFailure` that names the flag that is missing or superfluous.
    static func all(_ arguments: ParsedArguments) throws(CommandFailure) -> [IssuerSettings] {
        let names = arguments.values(of: issuer)
        if names.isEmpty, let stray = (details + [keyAuthorities]).first(where: { arguments.has($0) }) {
            throw CommandFailure("--\(stray.name) needs --token-issuer")
        }
        var issuers: [IssuerSettings] = []
        for name in names {
            if issuers.contains(where: { $0.name == name }) {
                throw CommandFailure("--token-issuer \(name) occurs twice")
            }
            issuers.append(try IssuerSettings(name, IssuerFlagReader(arguments, issuer: name, among: names)))
        }
        return issuers
    }

    private init(_ name: String, _ reader: IssuerFlagReader) throws(CommandFailure) {
        let audiences = try reader.values(Self.audience)
        let projects = try reader.values(Self.projectList).flatMap {
            $0.split(separator: ",").map { String($0).trimmingSpaces }
        }
        let source = try reader.value(Self.keySource)
        self.name = name
        userClaim = try reader.value(Self.uidClaim) ?? "sub"
        if let project = Self.firebaseProject(name) {
            guard audiences.isEmpty, projects.isEmpty else {
                throw CommandFailure("the audience and the project of \(name) follow from it: leave their flags out")
            }
            isFirebase = true
            (self.audiences, self.projects) = ([project], [project])
        } else {
            if audiences.isEmpty { throw CommandFailure("\(name) needs --token-audience") }
            if projects.isEmpty || projects.contains("") { throw CommandFailure("\(name) needs --token-projects") }
            isFirebase = false
            (self.audiences, self.projects) = (audiences, projects)
        }
        guard let text = source ?? (isFirebase ? TokenIssuer.firebaseKeysURL : nil) else {
            throw CommandFailure("\(name) needs --token-keys")
        }
        self.source = try Self.source(text)
    }

    /// The project of an issuer of Firebase; nil for another issuer.
    static func firebaseProject(_ name: String) -> String? {
        let prefix = "https://securetoken.google.com/"
        let project = name.dropFirst(prefix.count)
        return name.hasPrefix(prefix) && !project.isEmpty && !project.contains("/") ? String(project) : nil
    }

    private static func source(_ text: String) throws(CommandFailure) -> Source {
        guard text.hasPrefix("https://") || text.hasPrefix("http://") else { return .path(text) }
        guard let url = KeyURL(text) else {
            // Without the text: it may have a password.
            throw CommandFailure("a URL of --token-keys is https://HOST/PATH, without a user name and a password")
        }
        return .url(url)
    }

    /// The issuer for the verifier.
    func issuer(_ keys: any KeySource) -> TokenIssuer {
        TokenIssuer(
            issuer: name, audiences: audiences, projects: projects, userClaim: userClaim, needsSignInTime: isFirebase,
            keys: keys)
    }
}

/// Finds the values of flags that belong to one issuer.
private struct IssuerFlagReader {
    private let arguments: ParsedArguments
    private let issuer: String
    private let names: [String]

    init(_ arguments: ParsedArguments, issuer: String, among names: [String]) {
        self.arguments = arguments
        self.issuer = issuer
        self.names = names
    }

    func values(_ flag: Flag<String>) throws(CommandFailure) -> [String] {
        var found: [String] = []
        for text in arguments.values(of: flag) {
            // One issuer may be the beginning of another.
            let name = names.filter { text.hasPrefix("\($0)=") }.max { $0.utf8.count < $1.utf8.count }
            guard name != nil || names.count == 1 else {
                throw CommandFailure("with several issuers, write --\(flag.name) ISSUER=VALUE")
            }
            guard (name ?? issuer) == issuer else { continue }
            let value = name.map { String(text.dropFirst($0.count + 1)) } ?? text
            if value.isEmpty { throw CommandFailure("--\(flag.name) has no value for \(issuer)") }
            found.append(value)
        }
        return found
    }

    /// The value of a flag that an issuer has once.
    func value(_ flag: Flag<String>) throws(CommandFailure) -> String? {
        let found = try values(flag)
        if found.count > 1 { throw CommandFailure("\(issuer) has more than one --\(flag.name)") }
        return found.first
    }
}
