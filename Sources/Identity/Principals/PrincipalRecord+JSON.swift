// The JSON of the file of principals. A member with an unknown name is refused: it might be a misspelt limit.

internal import Basics
internal import DocumentJSON

/// Members of an object that are taken one by one.
private struct Members {
    private var rest: [String: JSONValue]
    private let what: String

    init(_ value: JSONValue, _ what: String) throws(PrincipalFault) {
        guard case .object(let members) = value else { throw PrincipalFault("\(what) is not an object") }
        rest = members
        self.what = what
    }

    mutating func take(_ name: String) -> JSONValue? { rest.removeValue(forKey: name) }

    mutating func text(_ name: String) throws(PrincipalFault) -> String {
        guard let text = take(name)?.text, !text.isEmpty else { throw PrincipalFault("\(what) has no text '\(name)'") }
        return text
    }

    mutating func moment(_ name: String) throws(PrincipalFault) -> Int64 {
        guard let moment = take(name)?.wholeNumber else { throw PrincipalFault("\(what) has no number '\(name)'") }
        return moment
    }

    /// nil if there is no such member.
    mutating func texts(_ name: String) throws(PrincipalFault) -> [String]? {
        guard let value = take(name) else { return nil }
        let texts = value.elements?.compactMap(\.text).filter { !$0.isEmpty }
        guard let texts, texts.count == value.elements?.count else {
            throw PrincipalFault("'\(name)' of \(what) is not an array of texts")
        }
        return texts
    }

    /// Empty if there is no such member.
    mutating func elements(_ name: String) throws(PrincipalFault) -> [JSONValue] {
        guard let value = take(name) else { return [] }
        guard let elements = value.elements else { throw PrincipalFault("'\(name)' of \(what) is not an array") }
        return elements
    }

    func end() throws(PrincipalFault) {
        if let name = rest.keys.sorted().first { throw PrincipalFault("\(what) has an unknown member '\(name)'") }
    }
}

extension PrincipalRecord {
    /// Reads the whole file.
    static func readAll(_ text: [UInt8]) throws(PrincipalFault) -> [PrincipalRecord] {
        let value: JSONValue
        do throws(JSONValue.Fault) {
            value = try JSONValue.read(text)
        } catch {
            throw PrincipalFault(
                error.isDuplicateName ? "a member occurs twice in an object" : "the file is not valid JSON")
        }
        var file = try Members(value, "the file")
        let elements = try file.elements("principals")
        try file.end()
        var records: [PrincipalRecord] = []
        for element in elements { records.append(try PrincipalRecord(element)) }
        return records
    }

    private init(_ value: JSONValue) throws(PrincipalFault) {
        name = try PrincipalRecord.checkedName(value["name"]?.text ?? "")
        let what = "the principal '\(name)'"
        var members = try Members(value, what)
        _ = members.take("name")
        guard let role = Role(rawValue: try members.text("role")) else {
            throw PrincipalFault("the role of \(what) is not admin, writer or reader")
        }
        self.role = role
        guard let projects = try members.texts("projects"), !projects.isEmpty else {
            throw PrincipalFault("\(what) has no 'projects'; [\"*\"] stands for all")
        }
        scope = Scope(
            projects: projects == ["*"] ? nil : projects, databases: try members.texts("databases"),
            collections: try members.texts("collections"))
        if role == .admin, scope.collections != nil { throw PrincipalFault("an admin has no 'collections': \(what)") }
        switch members.take("bypassesRules") {
        case nil: bypassesRules = role == .admin
        case .boolean(let value)?:
            if !value, role == .admin { throw PrincipalFault("an admin bypasses rules: \(what)") }
            bypassesRules = value
        default: throw PrincipalFault("'bypassesRules' of \(what) is not true or false")
        }
        for element in try members.elements("apiKeys") { apiKeys.append(try APIKeyRecord(element, what)) }
        certificates = try members.texts("certificates") ?? []
        for name in certificates { _ = try PrincipalRecord.checkedCertificate(name) }
        if let account = members.take("serviceAccount") { self.account = try ServiceAccountRecord(account, what) }
        try members.end()
    }

    /// A name of 1 to 100 letters, digits and `.-_@`: logs have it.
    static func checkedName(_ name: String) throws(PrincipalFault) -> String {
        let isPlain = name.unicodeScalars.allSatisfy { scalar in
            scalar.isASCII
                && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
                    || ".-_@".contains(Character(scalar)))
        }
        guard (1...100).contains(name.utf8.count), isPlain else {
            throw PrincipalFault("a principal's name has 1 to 100 letters, digits and .-_@")
        }
        return name
    }

    /// `URI:...` or `DNS:...`, in visible ASCII.
    static func checkedCertificate(_ name: String) throws(PrincipalFault) -> String {
        let isPlain = name.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        guard isPlain, name.hasPrefix("URI:") || name.hasPrefix("DNS:"), name.utf8.count > 4 else {
            throw PrincipalFault("a certificate's name is URI:NAME or DNS:NAME")
        }
        return name
    }

    var json: JSONValue {
        var members: [String: JSONValue] = [
            "name": .string(name), "role": .string(role.rawValue), "bypassesRules": .boolean(bypassesRules),
            "projects": .texts(scope.projects ?? ["*"]),
        ]
        if let databases = scope.databases { members["databases"] = .texts(databases) }
        if let collections = scope.collections { members["collections"] = .texts(collections) }
        if !apiKeys.isEmpty { members["apiKeys"] = .array(apiKeys.map(\.json)) }
        if !certificates.isEmpty { members["certificates"] = .texts(certificates) }
        if let account { members["serviceAccount"] = account.json }
        return .object(members)
    }
}

extension JSONValue {
    fileprivate static func texts(_ texts: [String]) -> JSONValue { .array(texts.map { .string($0) }) }
}

extension APIKeyRecord {
    fileprivate init(_ value: JSONValue, _ what: String) throws(PrincipalFault) {
        var members = try Members(value, "an API key of \(what)")
        identifier = try members.text("id")
        guard let hash = Hexadecimal.bytes(try members.text("sha256")).flatMap({ SHA256Hash(bytes: $0) }) else {
            throw PrincipalFault("'sha256' of an API key of \(what) has not 64 hexadecimal digits")
        }
        self.hash = hash
        createdAt = try members.moment("created")
        try members.end()
    }

    fileprivate var json: JSONValue {
        .object([
            "id": .string(identifier), "sha256": .string(Hexadecimal.text(hash.bytes.byteSpan)),
            "created": .integer(createdAt),
        ])
    }
}

extension ServiceAccountRecord {
    fileprivate init(_ value: JSONValue, _ what: String) throws(PrincipalFault) {
        var members = try Members(value, "the service account of \(what)")
        email = try members.text("email")
        tokenURI = try members.text("tokenURI")
        keys = []
        for element in try members.elements("keys") {
            var key = try Members(element, "a key of \(what)")
            keys.append(
                ServiceKeyRecord(
                    identifier: try key.text("id"), publicKey: try key.text("publicKey"),
                    createdAt: try key.moment("created")))
            try key.end()
        }
        try members.end()
    }

    fileprivate var json: JSONValue {
        .object([
            "email": .string(email), "tokenURI": .string(tokenURI),
            "keys": .array(
                keys.map {
                    .object([
                        "id": .string($0.identifier), "publicKey": .string($0.publicKey),
                        "created": .integer($0.createdAt),
                    ])
                }),
        ])
    }
}
