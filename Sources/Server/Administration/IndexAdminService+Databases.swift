// Databases: listed, created, changed, deleted.
//
// What cannot differ between the databases of a server (concurrency mode, retention) is reported as it is for all of
// them; a request that asks for something else is refused and says which flag sets it.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import FirestoreService

extension IndexAdminService {
    // MARK: Reading

    func database(_ name: String) throws(RequestError) -> AdminDatabase {
        let name = try DatabaseName(name)
        guard let known = store.describeDatabase(name), known.exists else { throw .noDatabase(name) }
        return message(of: known)
    }

    /// The databases of a project; those of all projects for `projects/-`.
    func databases(_ request: ListDatabasesRequest) throws(RequestError) -> ListDatabasesResponse {
        let project = try Self.project(ofParent: request.parent)
        let all = stores.flatMap(\.store.databaseDescriptions).filter { project == "-" || $0.name.project == project }
            .filter { request.showsDeleted || $0.exists }
        try Self.check(listed: all.count)
        return ListDatabasesResponse(databases: all.map(message).sorted { $0.name < $1.name })
    }

    /// Databases of one response: what an event loop encodes in a moment, and clients take as one message. The API has
    /// no pages of databases.
    private static let listedMax = 10_000

    /// - Throws: `RESOURCE_EXHAUSTED` for more databases than a response may have.
    static func check(listed count: Int) throws(RequestError) {
        if count <= listedMax { return }
        throw RequestError(
            .resourceExhausted,
            "A response has at most \(listedMax) databases, and these are \(count). Ask for one project.")
    }

    private static func project(ofParent parent: String) throws(RequestError) -> String {
        let parts = parent.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] == "projects", !parts[1].isEmpty else {
            throw .invalidArgument("Invalid parent \"\(parent)\": it must look like projects/{project}.")
        }
        return String(parts[1])
    }

    private func message(of known: DatabaseDescription) -> AdminDatabase {
        func time(_ microseconds: UInt64) -> TimestampValue? {
            microseconds > 0 ? TimestampValue(microseconds: Int64(clamping: microseconds)) : nil
        }
        var database = AdminDatabase(name: "\(known.name)")
        let settings = known.settings
        database.createTime = time(known.createMicroseconds)
        database.updateTime = time(settings?.updateMicroseconds ?? known.createMicroseconds)
        database.deleteTime = time(settings?.deleteMicroseconds ?? 0)
        database.location = settings?.location ?? ""
        database.concurrencyMode = concurrencyMode
        database.retentionSeconds = Int64(clamping: store.configuration.engine.retentionMicroseconds / 1_000_000)
        database.earliestVersionTime = time(max(store.oldestReadTime, known.createMicroseconds))
        database.pointInTimeRecovery = recoversPoints ? .on : .off
        database.appEngineIntegration = .off
        database.deleteProtection = settings?.isProtected == true ? .on : .off
        database.etag = known.etag
        return database
    }

    private var concurrencyMode: AdminDatabase.ConcurrencyMode {
        store.configuration.concurrencyMode == .pessimistic ? .pessimistic : .optimistic
    }

    /// Whether earlier versions stay for as long as the cloud keeps them with this setting.
    private var recoversPoints: Bool {
        store.configuration.engine.retentionMicroseconds >= 7 * 86_400 * 1_000_000
    }

    // MARK: Changing

    private static let locationBytesMax = 63

    /// What is kept of the location that a client names: whole characters of at most 63 bytes.
    private static func location(_ wanted: String) -> String {
        var kept = String.UnicodeScalarView()
        var bytesLeft = locationBytesMax
        for scalar in wanted.unicodeScalars {
            bytesLeft -= Unicode.UTF8.width(scalar)
            if bytesLeft < 0 { break }
            kept.append(scalar)
        }
        return String(kept)
    }

    func createDatabase(_ call: Call, _ request: CreateDatabaseRequest) throws {
        let project = try Self.project(ofParent: request.parent)
        guard DatabaseID.isValid(request.databaseID) else {
            throw RequestError.invalidArgument(
                """
                Invalid database_id "\(request.databaseID)": it must be (default), or 4 to 63 lowercase letters, \
                digits and hyphens, with a letter first and no hyphen last.
                """)
        }
        let name = try DatabaseName(project: project, database: request.databaseID)
        let wanted = request.database ?? AdminDatabase(name: "")
        try check(wanted)
        let settings = DatabaseSettings(
            state: .created, isProtected: wanted.deleteProtection == .on, location: Self.location(wanted.location))
        change(call, name, .create) { (known) throws(RequestError) in
            if known?.isBeingDeleted == true { throw .databaseIsBeingDeleted(name) }
            if known?.exists == true {
                throw RequestError(.alreadyExists, "The database \(name) exists already. Use another database_id.")
            }
            return settings
        }
    }

    func updateDatabase(_ call: Call, _ request: UpdateDatabaseRequest) throws {
        guard let wanted = request.database else { throw RequestError.invalidArgument("The database is missing.") }
        let name = try DatabaseName(wanted.name)
        let mask = request.mask ?? []
        if let path = mask.first(where: { !Self.changeable.contains($0) }) {
            throw RequestError.invalidArgument(
                "The field \(path) of a database cannot be changed; \(Self.changeable.joined(separator: ", ")) can.")
        }
        try check(wanted)
        let setsProtection = mask.isEmpty ? wanted.deleteProtection != .unspecified : mask.contains(Self.changeable[0])
        change(call, name, .update) { (known) throws(RequestError) in
            guard let known, known.exists else { throw .noDatabase(name) }
            try known.check(etag: wanted.etag)
            var settings = known.settings ?? DatabaseSettings(state: .created)
            if setsProtection { settings.isProtected = wanted.deleteProtection == .on }
            return settings
        }
    }

    private static let changeable = [
        "delete_protection_state", "concurrency_mode", "point_in_time_recovery_enablement",
        "app_engine_integration_mode", "type",
    ]

    /// - Throws: `UNIMPLEMENTED` for what this server has otherwise.
    private func check(_ wanted: AdminDatabase) throws(RequestError) {
        if wanted.typeNumber > 1 {
            throw RequestError(.unimplemented, "This server has databases of the type FIRESTORE_NATIVE only.")
        }
        if wanted.concurrencyMode != .unspecified, wanted.concurrencyMode != concurrencyMode {
            throw RequestError(.unimplemented, "The flag --concurrency-mode holds for all databases of this server.")
        }
        if wanted.pointInTimeRecovery == .on, !recoversPoints {
            throw RequestError(
                .unimplemented, "The flag --retention holds for all databases of this server; it is below seven days.")
        }
        if wanted.appEngineIntegration == .on {
            throw RequestError(.unimplemented, "This server has no App Engine.")
        }
    }

    private func change(
        _ call: Call, _ name: DatabaseName, _ kind: DatabaseOperation,
        _ change: @escaping @Sendable (DatabaseDescription?) throws(RequestError) -> DatabaseSettings
    ) {
        store.changeDatabase(name, change, completion: completion(call, name, kind))
    }

    func deleteDatabase(_ call: Call, _ request: DeleteDatabaseRequest) throws {
        let name = try DatabaseName(request.name)
        let check: @Sendable (DatabaseDescription) throws(RequestError) -> Void = { (known) throws(RequestError) in
            try known.check(etag: request.etag)
            if known.settings?.isProtected == true {
                throw RequestError(
                    .failedPrecondition,
                    """
                    The database \(name) is protected from deletion. Set its delete_protection_state to \
                    DELETE_PROTECTION_DISABLED first.
                    """)
            }
        }
        store.deleteDatabase(name, check: check, completion: completion(call, name, .delete))
    }

    /// Logs the change, and replies with its operation.
    private func completion(
        _ call: Call, _ name: DatabaseName, _ kind: DatabaseOperation
    ) -> @Sendable (Result<Void, RequestError>) -> Void {
        let log = log
        let bound = LoopBound((admin: self, call: call))
        return service.continuation(call) { _, _ in
            log(.info, "database_changed", ["database": "\(name)", "change": kind.rawValue])
            let (admin, call) = bound.value
            guard let known = admin.store.describeDatabase(name) else { throw RequestError.noDatabase(name) }
            let version =
                switch kind {
                case .create: known.createMicroseconds
                case .update: known.settings?.updateMicroseconds ?? known.createMicroseconds
                case .delete: known.settings?.deleteMicroseconds ?? known.createMicroseconds
                }
            admin.reply(call, try admin.operation(name, kind, version))
        }
    }

    // MARK: Operations

    /// - Throws: `NOT_FOUND` for a change that the database does not show.
    func operation(
        _ name: DatabaseName, _ kind: DatabaseOperation, _ version: UInt64
    ) throws(RequestError) -> LongRunningOperation {
        let operation = AdminOperation.database(name, kind, version: version)
        guard let known = store.describeDatabase(name), known.shows(kind, version) else {
            throw RequestError(.notFound, "There is no operation \(operation.name).")
        }
        let isDone = kind != .delete || !known.isBeingDeleted
        let response = AnyMessage(message(of: known), type: AdminDatabase.type)
        return LongRunningOperation(
            name: operation.name, metadata: AnyMessage(EmptyMessage(), type: kind.metadataType),
            result: isDone ? .response(response) : nil)
    }
}

extension DatabaseDescription {
    /// Changes with each change of the database.
    fileprivate var etag: String { String(settings?.updateMicroseconds ?? createMicroseconds, radix: 36) }

    /// - Throws: `ABORTED` if the client saw another state; an empty etag is for any.
    fileprivate func check(etag wanted: String) throws(RequestError) {
        if wanted.isEmpty || wanted == etag { return }
        throw RequestError(.aborted, "The database \(name) has changed: its etag is not \"\(wanted)\".")
    }

    /// Whether a change with a version was made.
    fileprivate func shows(_ kind: DatabaseOperation, _ version: UInt64) -> Bool {
        switch kind {
        case .create: createMicroseconds == version
        case .update: version > createMicroseconds && version <= settings?.updateMicroseconds ?? 0
        // One that came into being again was deleted completely before.
        case .delete: settings?.deleteMicroseconds == version || version > 0 && version < createMicroseconds
        }
    }
}

/// The ids that the cloud permits for databases.
enum DatabaseID {
    static func isValid(_ id: String) -> Bool {
        if id == "(default)" { return true }
        let bytes = Array(id.utf8)
        let isLetter = { (byte: UInt8) in (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
        let isDigit = { (byte: UInt8) in (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
        guard (4...63).contains(bytes.count), isLetter(bytes[0]), bytes[bytes.count - 1] != UInt8(ascii: "-") else {
            return false
        }
        return bytes.allSatisfy { isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "-") }
    }
}
