// A caller that one server has verified, for the server that takes the writes.
//
// The form is JSON. It is taken from a server that administers this one, and from nobody else: who may send it may do
// everything anyway.

internal import DocumentJSON

/// Who calls, as another server has found out.
package struct VouchedCaller: Sendable {
    package let authentication: Authentication
    /// Whether the other server verifies credentials. One that is open, or in the emulator's mode, does not.
    package let isVerified: Bool

    package init(_ authentication: Authentication, isVerified: Bool) {
        self.authentication = authentication
        self.isVerified = isVerified
    }

    // MARK: Bytes

    package var bytes: [UInt8] {
        var members: [String: JSONValue] = ["verified": .boolean(isVerified)]
        switch authentication.caller {
        case .anonymous: members["kind"] = .string("anonymous")
        case .admin: members["kind"] = .string("admin")
        case .user(let user):
            members["kind"] = .string("user")
            members["uid"] = .string(user.uid)
            members["claims"] = user.claims
            members["projects"] = Self.array(user.projects)
            members["signed_in_at"] = .integer(user.signedInAt)
            members["expires_at"] = .integer(user.expiresAt)
        case .service(let principal):
            members["kind"] = .string("service")
            members["name"] = .string(principal.name)
            members["role"] = .string(principal.role.rawValue)
            members["projects"] = Self.array(principal.scope.projects)
            members["databases"] = Self.array(principal.scope.databases)
            members["collections"] = Self.array(principal.scope.collections)
            members["bypasses_rules"] = .boolean(principal.bypassesRules)
            members["expires_at"] = authentication.expiresAt.map { .integer($0) }
        }
        return Array(JSONValue.object(members).json.utf8)
    }

    /// - Returns: nil for bytes of another form.
    package init?(bytes: [UInt8]) {
        guard let value = try? JSONValue.read(bytes), case .boolean(let isVerified)? = value["verified"] else {
            return nil
        }
        let caller: Caller
        switch value["kind"]?.text {
        case "anonymous": caller = .anonymous
        case "admin": caller = .admin
        case "user":
            guard let user = Self.user(value) else { return nil }
            caller = .user(user)
        case "service":
            guard let principal = Self.principal(value) else { return nil }
            caller = .service(principal)
        default: return nil
        }
        let credential: Authentication.Credential = if case .user = caller { .userToken } else { .none }
        self.init(
            Authentication(caller, expiresAt: Self.moment(value["expires_at"]), credential: credential),
            isVerified: isVerified)
    }

    private static func user(_ value: JSONValue) -> User? {
        guard let uid = value["uid"]?.text, let claims = value["claims"], case .object = claims,
            let expiresAt = moment(value["expires_at"]), let signedInAt = moment(value["signed_in_at"])
        else { return nil }
        return User(
            uid: uid, claims: claims, projects: texts(value["projects"]), expiresAt: expiresAt, signedInAt: signedInAt)
    }

    private static func principal(_ value: JSONValue) -> ServicePrincipal? {
        guard let name = value["name"]?.text, let role = value["role"]?.text.flatMap(Role.init(rawValue:)),
            case .boolean(let bypassesRules)? = value["bypasses_rules"]
        else { return nil }
        let scope = Scope(
            projects: texts(value["projects"]), databases: texts(value["databases"]),
            collections: texts(value["collections"]))
        return ServicePrincipal(name: name, role: role, scope: scope, bypassesRules: bypassesRules)
    }

    private static func array(_ texts: [String]?) -> JSONValue? { texts.map { .array($0.map { .string($0) }) } }

    /// Nil without a list, which means everything. An element of another kind is an empty text, which means nothing.
    private static func texts(_ value: JSONValue?) -> [String]? {
        guard let value else { return nil }
        return (value.elements ?? []).map { $0.text ?? "" }
    }

    private static func moment(_ value: JSONValue?) -> Int64? {
        guard case .integer(let moment)? = value else { return nil }
        return moment
    }
}

/// The bytes of callers of late, so that not each call makes them again. Not thread-safe.
package struct VouchedForms {
    /// Equal keys have equal bytes: objects do not change.
    private struct Key: Hashable {
        /// Nil for a caller without one.
        let object: ObjectIdentifier?
        let isAdmin: Bool
        let isVerified: Bool
        let expiresAt: Int64?

        init(_ vouched: VouchedCaller) {
            object = vouched.object.map { ObjectIdentifier($0) }
            isAdmin = if case .admin = vouched.authentication.caller { true } else { false }
            isVerified = vouched.isVerified
            expiresAt = vouched.authentication.expiresAt
        }
    }

    /// With the objects, whose identifiers are not used again meanwhile.
    private var forms: [Key: (object: AnyObject?, bytes: [UInt8])] = [:]

    /// Callers that are remembered. Beyond that it begins again.
    private static let countMax = 1_000

    package init() {}

    /// Those of a caller.
    package mutating func bytes(of vouched: VouchedCaller) -> [UInt8] {
        let key = Key(vouched)
        if let known = forms[key] { return known.bytes }
        if forms.count >= Self.countMax { forms.removeAll() }
        let bytes = vouched.bytes
        forms[key] = (vouched.object, bytes)
        return bytes
    }
}

extension VouchedCaller {
    /// What the caller is, if it is an object.
    fileprivate var object: AnyObject? {
        switch authentication.caller {
        case .anonymous, .admin: nil
        case .user(let user): user
        case .service(let principal): principal
        }
    }
}
