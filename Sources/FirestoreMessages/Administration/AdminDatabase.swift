// `google.firestore.admin.v1.Database` and the RPCs of databases.

package import Basics
internal import CFirestoreProto
package import DocumentModel

/// A database as the admin API describes it; its type is always that of Firestore.
package struct AdminDatabase: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__database__init, google__firestore__admin__v1__database__init)

    package static let type = "google.firestore.admin.v1.Database"

    /// Which transactions begin if a client does not choose.
    package enum ConcurrencyMode: UInt32, Sendable {
        case unspecified = 0
        case optimistic = 1
        case pessimistic = 2
        case optimisticWithEntityGroups = 3
    }

    /// A setting that is on, off, or not given.
    package enum Switch: UInt32, Sendable {
        case unspecified, on, off
    }

    /// `projects/P/databases/D`
    package var name: String
    package var createTime: TimestampValue?
    package var updateTime: TimestampValue?
    /// When the deletion began.
    package var deleteTime: TimestampValue?
    package var location = ""
    /// The number of the type as it was sent; 0 and 1 are Firestore's.
    package var typeNumber: UInt32 = 1
    package var concurrencyMode = ConcurrencyMode.unspecified
    /// How long earlier versions stay readable.
    package var retentionSeconds: Int64?
    package var earliestVersionTime: TimestampValue?
    package var pointInTimeRecovery = Switch.unspecified
    package var appEngineIntegration = Switch.unspecified
    package var deleteProtection = Switch.unspecified
    package var etag = ""

    package init(name: String) { self.name = name }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            var database = unsafe AdminDatabase(name: message.name.text)
            unsafe database.createTime = try lendLast(message.create_time, message.n_create_time, Self.time)
            unsafe database.updateTime = try lendLast(message.update_time, message.n_update_time, Self.time)
            unsafe database.deleteTime = try lendLast(message.delete_time, message.n_delete_time, Self.time)
            unsafe database.location = message.location_id.text
            unsafe database.typeNumber = message.type.rawValue
            unsafe database.concurrencyMode =
                ConcurrencyMode(rawValue: message.concurrency_mode.rawValue) ?? .unspecified
            unsafe database.retentionSeconds = try lendLast(
                message.version_retention_period, message.n_version_retention_period
            ) { try Self.time($0).seconds }
            unsafe database.earliestVersionTime = try lendLast(
                message.earliest_version_time, message.n_earliest_version_time, Self.time)
            unsafe database.pointInTimeRecovery =
                Switch(rawValue: message.point_in_time_recovery_enablement.rawValue) ?? .unspecified
            unsafe database.appEngineIntegration =
                Switch(rawValue: message.app_engine_integration_mode.rawValue) ?? .unspecified
            // Of this setting alone the numbers are the other way round.
            let protection = unsafe message.delete_protection_state.rawValue
            database.deleteProtection = protection == 2 ? .on : protection == 1 ? .off : .unspecified
            unsafe database.etag = message.etag.text
            return database
        }
    }

    /// A timestamp or a duration, which have the same fields.
    private static func time(_ wire: RawSpan) throws -> TimestampValue {
        var reader = WireReader(wire)
        return try TimestampValue(reading: &reader)
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.name = arena.bytes(name)
            unsafe (message.n_create_time, message.create_time) = arena.optional(createTime, Self.write)
            unsafe (message.n_update_time, message.update_time) = arena.optional(updateTime, Self.write)
            unsafe (message.n_delete_time, message.delete_time) = arena.optional(deleteTime, Self.write)
            unsafe message.location_id = arena.bytes(location)
            unsafe message.type = Held__FirestoreAdmin__Database__DatabaseType(rawValue: typeNumber)
            unsafe message.concurrency_mode = Held__FirestoreAdmin__Database__ConcurrencyMode(
                rawValue: concurrencyMode.rawValue)
            unsafe (message.n_version_retention_period, message.version_retention_period) = arena.optional(
                retentionSeconds.map { TimestampValue(seconds: $0, nanoseconds: 0) }, Self.write)
            unsafe (message.n_earliest_version_time, message.earliest_version_time) = arena.optional(
                earliestVersionTime, Self.write)
            unsafe message.point_in_time_recovery_enablement =
                Held__FirestoreAdmin__Database__PointInTimeRecoveryEnablement(rawValue: pointInTimeRecovery.rawValue)
            unsafe message.app_engine_integration_mode = Held__FirestoreAdmin__Database__AppEngineIntegrationMode(
                rawValue: appEngineIntegration.rawValue)
            unsafe message.delete_protection_state = Held__FirestoreAdmin__Database__DeleteProtectionState(
                rawValue: deleteProtection == .on ? 2 : deleteProtection == .off ? 1 : 0)
            unsafe message.etag = arena.bytes(etag)
        }
    }

    private static func write(_ time: TimestampValue, into writer: inout ByteBuffer) {
        writer.writeIfSet(FieldNumber.Protobuf.Timestamp.seconds, int64: time.seconds)
        writer.writeIfSet(FieldNumber.Protobuf.Timestamp.nanos, int64: Int64(time.nanoseconds))
    }
}

package struct CreateDatabaseRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__create_database_request__init,
        google__firestore__admin__v1__create_database_request__init)

    /// `projects/P`
    package var parent: String
    package var database: AdminDatabase?
    package var databaseID: String

    package init(parent: String, database: AdminDatabase?, databaseID: String) {
        self.parent = parent
        self.database = database
        self.databaseID = databaseID
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe CreateDatabaseRequest(
                parent: message.parent.text,
                database: try lendLast(message.database, message.n_database) { try AdminDatabase(wire: $0) },
                databaseID: message.database_id.text)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.parent = arena.bytes(parent)
            unsafe (message.n_database, message.database) = arena.optional(database) { $0.encode(into: &$1) }
            unsafe message.database_id = arena.bytes(databaseID)
        }
    }
}

package struct UpdateDatabaseRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__update_database_request__init,
        google__firestore__admin__v1__update_database_request__init)

    package var database: AdminDatabase?
    /// Fields of the database; nil for all.
    package var mask: [String]?

    package init(database: AdminDatabase?, mask: [String]? = nil) {
        self.database = database
        self.mask = mask
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe UpdateDatabaseRequest(
                database: try lendLast(message.database, message.n_database) { try AdminDatabase(wire: $0) },
                mask: try lendLast(message.update_mask, message.n_update_mask) { try FieldMask(wire: $0).paths })
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_database, message.database) = arena.optional(database) { $0.encode(into: &$1) }
            unsafe (message.n_update_mask, message.update_mask) = arena.optional(mask) {
                FieldMask(paths: $0).encode(into: &$1)
            }
        }
    }
}

package struct DeleteDatabaseRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__delete_database_request__init,
        google__firestore__admin__v1__delete_database_request__init)

    package var name: String
    /// Empty for any state of the database.
    package var etag: String

    package init(name: String, etag: String = "") {
        self.name = name
        self.etag = etag
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe DeleteDatabaseRequest(name: message.name.text, etag: message.etag.text)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.name = arena.bytes(name)
            unsafe message.etag = arena.bytes(etag)
        }
    }
}

package struct ListDatabasesRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__list_databases_request__init,
        google__firestore__admin__v1__list_databases_request__init)

    /// `projects/P`
    package var parent: String
    /// Whether databases are listed that are being deleted.
    package var showsDeleted: Bool

    package init(parent: String, showsDeleted: Bool = false) {
        self.parent = parent
        self.showsDeleted = showsDeleted
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe ListDatabasesRequest(parent: message.parent.text, showsDeleted: message.show_deleted != 0)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.parent = arena.bytes(parent)
            unsafe message.show_deleted = showsDeleted ? 1 : 0
        }
    }
}

package struct ListDatabasesResponse: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__list_databases_response__init,
        google__firestore__admin__v1__list_databases_response__init)

    package var databases: [AdminDatabase]

    package init(databases: [AdminDatabase]) { self.databases = databases }

    package init(wire: RawSpan) throws {
        databases = try unsafe Self.layout.read(wire) { message in
            try unsafe elements(message.databases, message.n_databases) {
                try unsafe $0.lend { try AdminDatabase(wire: $0) }
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_databases, message.databases) = arena.list(databases) { unsafe arena.bytes($0.encode) }
        }
    }
}
