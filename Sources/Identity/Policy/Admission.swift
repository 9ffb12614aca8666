// What the mode of a server means for a call, before any rule is asked.

package import Basics

/// What a call is for.
package enum Purpose: String, Sendable, CaseIterable {
    case health
    case documents
    /// Metrics, reflection and the console.
    case observation
    case administration
}

/// What is known about a caller's rights.
package enum Standing: Equatable, Sendable {
    case anonymous
    case user
    /// - Parameters:
    ///   - permits: whether role and scope permit the call.
    ///   - bypassesRules: whether rules are not asked.
    case service(permits: Bool, bypassesRules: Bool)
    case admin

    /// The standing of a caller for a call.
    ///
    /// - Parameter collection: the root collection; nil if the call may reach several.
    package init(_ caller: Caller, _ access: Access, project: String, database: String, collection: String?) {
        switch caller {
        case .anonymous: self = .anonymous
        // A user of another project's issuer is nobody here.
        case .user(let user): self = user.opens(project: project) ? .user : .anonymous
        case .service(let principal):
            self = .service(
                permits: principal.allows(access, project: project, database: database, collection: collection),
                bypassesRules: principal.bypassesRules)
        case .admin: self = .admin
        }
    }
}

/// The way of a request to the server.
package struct Approach: Equatable, Sendable {
    /// Whether it came to an address of this machine alone.
    package var isLoopback: Bool
    /// Whether it has `Forwarded`, `X-Forwarded-For`, `Via` or a PROXY header: then anyone may have sent it.
    package var isProxied: Bool

    package init(isLoopback: Bool, isProxied: Bool) {
        self.isLoopback = isLoopback
        self.isProxied = isProxied
    }
}

/// Whether a call may be made.
package enum Admission: Equatable, Sendable {
    case allowed
    /// The security rules decide.
    case byRules
    case refused(StatusCode, String)
}

extension SecurityMode {
    static let proxyRemedy = """
        a request through a proxy reached an open server: start it with --rules, --token-issuer or --principals, or \
        with --insecure
        """

    /// Whether a call may be made.
    ///
    /// - Parameter hasRules: whether the database has security rules.
    package func admission(
        of caller: Standing, for purpose: Purpose, via approach: Approach, hasRules: Bool
    ) -> Admission {
        if purpose == .health || self == .insecure { return .allowed }
        if self != .closed, approach.isProxied { return .refused(.permissionDenied, Self.proxyRemedy) }
        switch self {
        case .open, .insecure: return .allowed
        case .emulator:
            return purpose == .documents && hasRules && caller != .admin ? Self.byRules(caller) : .allowed
        case .closed: return closedAdmission(of: caller, for: purpose, via: approach, hasRules: hasRules)
        }
    }

    /// Rules decide for everyone but principals that bypass them.
    private static func byRules(_ caller: Standing) -> Admission {
        guard case .service(let permits, let bypassesRules) = caller else { return .byRules }
        if !permits { return .refused(.permissionDenied, "the principal's role does not permit the call") }
        return bypassesRules ? .allowed : .byRules
    }

    private func closedAdmission(
        of caller: Standing, for purpose: Purpose, via approach: Approach, hasRules: Bool
    ) -> Admission {
        if caller == .admin { return .allowed }
        if case .service(permits: false, _) = caller, purpose != .observation {
            return .refused(.permissionDenied, "the principal's role does not permit the call")
        }
        switch (purpose, caller) {
        case (.documents, .service(_, bypassesRules: true)), (.administration, .service), (.observation, .service):
            return .allowed
        case (.documents, _) where hasRules: return .byRules
        case (.observation, _) where approach.isLoopback && !approach.isProxied: return .allowed
        case (_, .anonymous): return .refused(.unauthenticated, "the call needs a credential")
        case (.documents, .service):
            return .refused(
                .permissionDenied, "the database has no security rules, and the principal does not bypass them")
        case (.documents, _): return .refused(.permissionDenied, "the database has no security rules")
        default: return .refused(.permissionDenied, "the call needs a principal")
        }
    }

    /// Who may do what, a line each: what an operator reads before a port is opened.
    package func summary(isLoopback: Bool, hasRules: Bool) -> [String] {
        let callers: [(String, Standing)] = [
            ("without a credential", .anonymous), ("users", .user),
            ("principals within their role", .service(permits: true, bypassesRules: false)),
            ("principals that bypass rules", .service(permits: true, bypassesRules: true)), ("admins", .admin),
        ]
        return callers.flatMap { name, standing in
            [false, true].map { isProxied in
                let approach = Approach(isLoopback: isLoopback, isProxied: isProxied)
                let parts = Purpose.allCases.map { purpose in
                    let admission = admission(of: standing, for: purpose, via: approach, hasRules: hasRules)
                    return "\(purpose.rawValue) \(admission.word)"
                }
                return "\(name)\(isProxied ? ", through a proxy" : ""): \(parts.joined(separator: ", "))"
            }
        }
    }
}

extension Admission {
    fileprivate var word: String {
        switch self {
        case .allowed: "yes"
        case .byRules: "by the rules"
        case .refused: "no"
        }
    }
}
