// The actions of `hearth token` on the file of principals.

import Basics
import DocumentJSON
import Identity

/// Creates, lists and revokes credentials of servers.
enum PrincipalActions {
    private static let principals = Flag<String>(
        "principals", "FILE", required: false, help: "The file of principals; create makes it if there is none.")
    private static let role = Flag<String>(
        "role", "ROLE", required: false, help: "What the principal may do: admin, writer or reader.")
    private static let projects = Flag<String>(
        repeatable: "project", "ID", help: "A project that the principal may reach; * stands for all.")
    private static let databases = Flag<String>(
        repeatable: "database", "ID", help: "A database of the projects; all of them without the flag.")
    private static let collections = Flag<String>(
        repeatable: "collection", "ID",
        help: "A root collection that the principal may reach, with all below it; all without the flag.")
    private static let bypassesRules = Flag(
        switch: "bypass-rules", help: "Security rules are not asked. They never are for an admin.")
    private static let apiKey = Flag(switch: "api-key", help: "The credential is a new API key.")
    private static let serviceAccount = Flag(
        switch: "service-account", help: "The credential is a new key file for Google's server SDKs.")
    private static let url = Flag<String>(
        "url", "URL", required: false, help: "https://HOST of the server as the clients of a key file reach it.")
    private static let certificate = Flag<String>(
        "certificate", "NAME", required: false,
        help: "The credential is a client certificate with this alternative name: URI:NAME or DNS:NAME.")

    static let flags: [any FlagDeclaration] = [
        principals, role, projects, databases, collections, bypassesRules, apiKey, serviceAccount, url, certificate,
    ]

    private static func file(_ arguments: ParsedArguments) throws(UsageError) -> String {
        guard let file = arguments.value(of: principals) else { throw UsageError(message: "missing --principals FILE") }
        return file
    }

    // MARK: create

    static func create(_ name: String, _ arguments: ParsedArguments) throws {
        let (file, grant) = (try file(arguments), try grant(arguments))
        let isGiven = [arguments[apiKey], arguments[serviceAccount], arguments.has(certificate)]
        guard isGiven.count(where: \.self) == 1 else {
            throw UsageError(message: "give one of --api-key, --service-account and --certificate")
        }
        if let certificate = arguments.value(of: certificate) {
            try PrincipalFile.edit(file) { list throws(PrincipalFault) in
                try list.addCertificate(certificate, to: name, grant)
            }
            return try StandardOutput.print("\(name) is who shows a certificate for \(certificate)")
        }
        let output = try SecretOutput(arguments.value(of: TokenCommand.output))
        do {
            try arguments[serviceAccount]
                ? addServiceKey(name, grant, file, arguments, output) : addAPIKey(name, grant, file, output)
        } catch {
            output.remove()
            throw error
        }
        CommandRouter.complain("the secret is not shown again; a running server reads \(file) on SIGHUP")
    }

    private static func addAPIKey(
        _ name: String, _ grant: PrincipalList.Grant, _ file: String, _ output: SecretOutput
    ) throws {
        _ = try PrincipalFile.edit(file, handOver: output.write) { list throws(PrincipalFault) in
            try list.addAPIKey(to: name, grant, now: TokenCommand.now) + "\n"
        }
    }

    private static func addServiceKey(
        _ name: String, _ grant: PrincipalList.Grant, _ file: String, _ arguments: ParsedArguments,
        _ output: SecretOutput
    ) throws {
        guard let url = arguments.value(of: url) else {
            throw UsageError(message: "--service-account needs --url https://HOST")
        }
        guard let project = arguments.values(of: projects).first(where: { $0 != "*" }) else {
            throw UsageError(message: "a key file names a project: give a --project beside *")
        }
        _ = try PrincipalFile.edit(file, handOver: output.write) { list throws(PrincipalFault) in
            try list.addServiceKey(to: name, grant, url: url, project: project, now: TokenCommand.now)
        }
    }

    private static func grant(_ arguments: ParsedArguments) throws(UsageError) -> PrincipalList.Grant {
        guard let role = arguments.value(of: role).flatMap(Role.init) else {
            throw UsageError(message: "--role must be admin, writer or reader")
        }
        let projects = arguments.values(of: projects)
        if projects.isEmpty { throw UsageError(message: "missing --project ID; * stands for all projects") }
        func names(_ flag: Flag<String>) -> [String]? { arguments.has(flag) ? arguments.values(of: flag) : nil }
        return PrincipalList.Grant(
            role: role,
            scope: Scope(
                projects: projects.contains("*") ? nil : projects, databases: names(databases),
                collections: names(collections)),
            bypassesRules: arguments[bypassesRules])
    }

    // MARK: list, revoke

    static func list(_ arguments: ParsedArguments) throws {
        for record in try PrincipalFile.read(try file(arguments)) {
            if arguments[TokenCommand.json] {
                try StandardOutput.print(object(of: record).json)
                continue
            }
            for line in lines(of: record) { try StandardOutput.print(line) }
        }
    }

    private static func object(of record: PrincipalRecord) -> JSONValue {
        func names(_ names: [String]?) -> JSONValue { names.map { .array($0.map(JSONValue.string)) } ?? .null }
        func key(_ identifier: String, _ createdAt: Int64) -> JSONValue {
            .object(["id": .string(identifier), "createTime": .string(date(createdAt))])
        }
        return .object([
            "name": .string(record.name), "role": .string(record.role.rawValue),
            "projects": names(record.scope.projects), "databases": names(record.scope.databases),
            "collections": names(record.scope.collections), "bypassesRules": .boolean(record.bypassesRules),
            "apiKeys": .array(record.apiKeys.map { key($0.identifier, $0.createdAt) }),
            "certificates": .array(record.certificates.map(JSONValue.string)),
            "serviceAccountKeys": .array((record.account?.keys ?? []).map { key($0.identifier, $0.createdAt) }),
        ])
    }

    private static func lines(of record: PrincipalRecord) -> [String] {
        func names(_ names: [String]?) -> String { names?.joined(separator: ",") ?? "*" }
        let scope = record.scope
        let rules = record.bypassesRules ? ", bypasses rules" : ""
        var lines = [
            "\(record.name): \(record.role.rawValue), projects \(names(scope.projects)), databases "
                + "\(names(scope.databases)), collections \(names(scope.collections))\(rules)"
        ]
        lines += record.apiKeys.map { "  API key \($0.identifier), made \(date($0.createdAt))" }
        lines += record.certificates.map { "  certificate \($0)" }
        for key in record.account?.keys ?? [] {
            lines.append("  service account key \(key.identifier), made \(date(key.createdAt))")
        }
        return lines
    }

    private static func date(_ seconds: Int64) -> String { CalendarDate(secondsSinceEpoch: seconds).rfc3339 }

    static func revoke(_ name: String, _ arguments: ParsedArguments) throws {
        let file = try file(arguments)
        try PrincipalFile.edit(file, takesRights: true) { list throws(PrincipalFault) in
            if !list.revoke(credential: name), !list.remove(name) { throw PrincipalFault("\(file) has no \(name)") }
        }
        try StandardOutput.print("\(name) is revoked; a running server reads \(file) on SIGHUP")
    }
}
