internal import FirestoreMessages

/// A method of a known service that a listener does not serve, and where to go instead.
struct UnimplementedMethod {
    private let name: String
    private let service: String

    static let firestoreAdmin = "google.firestore.admin.v1.FirestoreAdmin"
    private static let socket = "the socket admin.sock in the server's data directory"

    /// - Parameter path: `/package.Service/Method`.
    /// - Returns: nil if nothing is known about the method.
    init?(path: String) {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].isEmpty else { return nil }
        self.init(String(parts[2]), of: String(parts[1]))
    }

    init?(_ name: String, of service: String) {
        let isAdministrative = Self.administrative.contains { $0.hasPrefix("/\(service)/") }
        guard isAdministrative || Self.substitutes[service]?[name] != nil else { return nil }
        self.name = name
        self.service = service
    }

    /// The paths for administrators.
    private static let administrative = Set(Method.allCases.filter(\.service.isAdministrative).flatMap(\.paths))

    /// The text of the error. A method that a listener serves does not get here.
    var text: String {
        if let substitute = Self.substitutes[service]?[name] {
            return "\(name) is not implemented by this server: \(substitute)"
        }
        if Self.administrative.contains("/\(service)/\(name)") { return "\(name) is served on \(Self.socket) only" }
        let served = Self.administrative.compactMap { path in
            path.hasPrefix("/\(service)/") ? path.split(separator: "/").last : nil
        }
        return """
            \(name) is not implemented by this server, which has \(served.sorted().joined(separator: ", ")) of \
            \(service)
            """
    }

    private static let backups = "copy data directories with the commands hearth backup and hearth restore"
    private static let users = "it has no users"

    /// What does the work of methods that are not served, by service and method.
    private static let substitutes = [
        firestoreAdmin: [
            "ExportDocuments": "use the command hearth export --format managed",
            "ImportDocuments": "use the command hearth import",
            "BulkDeleteDocuments": "use the command hearth delete --recursive",
            "RestoreDatabase": backups, "CloneDatabase": backups,
            "GetBackup": backups, "ListBackups": backups, "DeleteBackup": backups,
            "CreateBackupSchedule": backups, "GetBackupSchedule": backups, "ListBackupSchedules": backups,
            "UpdateBackupSchedule": backups, "DeleteBackupSchedule": backups,
            "CreateUserCreds": users, "GetUserCreds": users, "ListUserCreds": users, "EnableUserCreds": users,
            "DisableUserCreds": users, "ResetUserPassword": users, "DeleteUserCreds": users,
        ]
    ]
}
