// `google.firestore.admin.v1.Database` and the RPCs of databases.

internal import Basics
internal import CFirestoreProto
package import DocumentModel

/// A database as the admin API describes it; its type is always that of Firestore.
package struct AdminDatabase: TableMessage, Equatable, Sendable {
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

    static let table = unsafe MessageTable(
        AdminDatabase(name: ""), held__firestore_admin__database__init, google__firestore__admin__v1__database__init,
        [
            .text(\.name, \.name), .text(\.location, \.location_id), .text(\.etag, \.etag),
            .optional(\.createTime, \.create_time, \.n_create_time, read: time, write: write),
            .optional(\.updateTime, \.update_time, \.n_update_time, read: time, write: write),
            .optional(\.deleteTime, \.delete_time, \.n_delete_time, read: time, write: write),
            .optional(
                \.earliestVersionTime, \.earliest_version_time, \.n_earliest_version_time, read: time, write: write),
            .optional(\.retentionSeconds, \.version_retention_period, \.n_version_retention_period) {
                try time($0).seconds
            } write: {
                write(TimestampValue(seconds: $0, nanoseconds: 0), into: &$1)
            },
            .enumeration(\.concurrencyMode, \.concurrency_mode),
            .enumeration(\.pointInTimeRecovery, \.point_in_time_recovery_enablement),
            .enumeration(\.appEngineIntegration, \.app_engine_integration_mode),
            .custom { held, message in
                unsafe message.typeNumber = held.type.rawValue
                // Of this setting alone the numbers are the other way round.
                let protection = unsafe held.delete_protection_state.rawValue
                message.deleteProtection = protection == 2 ? .on : protection == 1 ? .off : .unspecified
            } write: { message, held, _ in
                unsafe held.type = Held__FirestoreAdmin__Database__DatabaseType(rawValue: message.typeNumber)
                unsafe held.delete_protection_state = Held__FirestoreAdmin__Database__DeleteProtectionState(
                    rawValue: message.deleteProtection == .on ? 2 : message.deleteProtection == .off ? 1 : 0)
            },
        ])

    /// A timestamp or a duration, which have the same fields.
    private static func time(_ wire: RawSpan) throws -> TimestampValue {
        var reader = WireReader(wire)
        return try TimestampValue(reading: &reader)
    }

    private static func write(_ time: TimestampValue, into writer: inout ByteBuffer) {
        writer.writeIfSet(FieldNumber.Protobuf.Timestamp.seconds, int64: time.seconds)
        writer.writeIfSet(FieldNumber.Protobuf.Timestamp.nanos, int64: Int64(time.nanoseconds))
    }
}

package struct CreateDatabaseRequest: TableMessage, Equatable, Sendable {
    /// `projects/P`
    package var parent: String
    package var database: AdminDatabase?
    package var databaseID: String

    package init(parent: String, database: AdminDatabase?, databaseID: String) {
        self.parent = parent
        self.database = database
        self.databaseID = databaseID
    }

    static let table = unsafe MessageTable(
        CreateDatabaseRequest(parent: "", database: nil, databaseID: ""),
        held__firestore_admin__create_database_request__init,
        google__firestore__admin__v1__create_database_request__init,
        [
            .text(\.parent, \.parent), .optional(\.database, \.database, \.n_database),
            .text(\.databaseID, \.database_id),
        ])
}

package struct UpdateDatabaseRequest: TableMessage, Equatable, Sendable {
    package var database: AdminDatabase?
    /// Fields of the database; nil for all.
    package var mask: [String]?

    package init(database: AdminDatabase?, mask: [String]? = nil) {
        self.database = database
        self.mask = mask
    }

    static let table = unsafe MessageTable(
        UpdateDatabaseRequest(database: nil), held__firestore_admin__update_database_request__init,
        google__firestore__admin__v1__update_database_request__init,
        [
            .optional(\.database, \.database, \.n_database),
            .mask(\.mask, \.update_mask, \.n_update_mask),
        ])
}

package struct DeleteDatabaseRequest: TableMessage, Equatable, Sendable {
    package var name: String
    /// Empty for any state of the database.
    package var etag: String

    package init(name: String, etag: String = "") {
        self.name = name
        self.etag = etag
    }

    static let table = unsafe MessageTable(
        DeleteDatabaseRequest(name: ""), held__firestore_admin__delete_database_request__init,
        google__firestore__admin__v1__delete_database_request__init,
        [.text(\.name, \.name), .text(\.etag, \.etag)])
}

package struct ListDatabasesRequest: TableMessage, Equatable, Sendable {
    /// `projects/P`
    package var parent: String
    /// Whether databases are listed that are being deleted.
    package var showsDeleted: Bool

    package init(parent: String, showsDeleted: Bool = false) {
        self.parent = parent
        self.showsDeleted = showsDeleted
    }

    static let table = unsafe MessageTable(
        ListDatabasesRequest(parent: ""), held__firestore_admin__list_databases_request__init,
        google__firestore__admin__v1__list_databases_request__init,
        [.text(\.parent, \.parent), .flag(\.showsDeleted, \.show_deleted)])
}

package struct ListDatabasesResponse: TableMessage, Equatable, Sendable {
    package var databases: [AdminDatabase]

    package init(databases: [AdminDatabase]) { self.databases = databases }

    static let table = unsafe MessageTable(
        ListDatabasesResponse(databases: []), held__firestore_admin__list_databases_response__init,
        google__firestore__admin__v1__list_databases_response__init,
        [.messages(\.databases, \.databases, \.n_databases)])
}
