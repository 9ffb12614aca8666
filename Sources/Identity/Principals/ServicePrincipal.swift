/// What a principal may do.
package enum Role: String, Sendable, CaseIterable {
    /// Reads, writes and administers; bypasses rules.
    case admin
    case writer
    case reader
}

/// What a call needs.
package enum Access: Sendable {
    case read
    case write
    case administer
}

/// Where a principal's role holds.
package struct Scope: Equatable, Sendable {
    /// Identifiers of projects; nil for all, written `"*"`.
    package var projects: [String]?
    /// Identifiers of databases, such as `(default)`; nil for all of the projects.
    package var databases: [String]?
    /// Identifiers of root collections, with all below them; nil for whole databases.
    package var collections: [String]?

    package init(projects: [String]?, databases: [String]? = nil, collections: [String]? = nil) {
        self.projects = projects
        self.databases = databases
        self.collections = collections
    }

    /// - Parameter collection: the root collection of what a call reaches; nil if it may reach several.
    func contains(project: String, database: String, collection: String?) -> Bool {
        func has(_ names: [String]?, _ name: String?) -> Bool {
            guard let names else { return true }
            guard let name else { return false }
            return names.contains { $0.isSame(as: name) }
        }
        return has(projects, project) && has(databases, database) && has(collections, collection)
    }
}

/// A server that calls. Immutable and thread-safe.
package final class ServicePrincipal: Sendable {
    package let name: String
    package let role: Role
    package let scope: Scope
    /// Whether security rules are not asked. An `admin` always bypasses them.
    package let bypassesRules: Bool

    init(name: String, role: Role, scope: Scope, bypassesRules: Bool) {
        self.name = name
        self.role = role
        self.scope = scope
        self.bypassesRules = bypassesRules || role == .admin
    }

    /// Whether the role and its scope permit a call. Rules may still refuse it, unless they are bypassed.
    ///
    /// - Parameter collection: the root collection; nil if the call may reach several.
    package func allows(_ access: Access, project: String, database: String, collection: String?) -> Bool {
        let isInRole =
            switch access {
            case .read: true
            case .write: role != .reader
            case .administer: role == .admin
            }
        return isInRole && scope.contains(project: project, database: database, collection: collection)
    }

    /// Whether the role permits administration of the whole server.
    package var administersServer: Bool {
        role == .admin && scope.projects == nil && scope.databases == nil
    }
}
