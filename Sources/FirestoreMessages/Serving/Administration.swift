// The messages of `hearth.admin.v1`, by which operators' tools talk to a running server.

internal import CFirestoreProto
internal import DocumentModel

/// A message without fields: several requests and responses are.
package struct EmptyMessage: TableMessage, Equatable, Sendable {
    package init() {}

    static let table = unsafe MessageTable(
        EmptyMessage(), held__admin__checkpoint_request__init, hearth__admin__v1__checkpoint_request__init, [])
}

/// Where a server listens.
package struct ServerInformation: TableMessage, Equatable, Sendable {
    /// `HOST:PORT`
    package var address: String

    package init(address: String) { self.address = address }

    static let table = unsafe MessageTable(
        ServerInformation(address: ""), held__admin__server__init, hearth__admin__v1__server__init,
        [.text(\.address, \.address)])
}

package struct BackupRequest: TableMessage, Equatable, Sendable {
    /// An absolute path on the server's machine.
    package var directory: String

    package init(directory: String) { self.directory = directory }

    static let table = unsafe MessageTable(
        BackupRequest(directory: ""), held__admin__backup_request__init, hearth__admin__v1__backup_request__init,
        [.text(\.directory, \.directory)])
}

package struct ForkRequest: TableMessage, Equatable, Sendable {
    /// An absolute path on the server's machine.
    package var directory: String

    package init(directory: String) { self.directory = directory }

    static let table = unsafe MessageTable(
        ForkRequest(directory: ""), held__admin__fork_request__init, hearth__admin__v1__fork_request__init,
        [.text(\.directory, \.directory)])
}

package struct ForkResponse: TableMessage, Equatable, Sendable {
    /// Of files that could not be shared.
    package var copiedBytes: Int64

    package init(copiedBytes: Int64) { self.copiedBytes = copiedBytes }

    static let table = unsafe MessageTable(
        ForkResponse(copiedBytes: 0), held__admin__fork_response__init, hearth__admin__v1__fork_response__init,
        [.number(\.copiedBytes, \.copied_bytes)])
}

// MARK: Indexes

/// How a field is indexed.
package enum IndexMode: UInt8, Sendable {
    case unspecified = 0
    case ascending = 1
    case descending = 2
    case contains = 3
    case vector = 4
    case text = 5
    case geo = 6

    /// An unknown number reads as unspecified.
    fileprivate init(_ mode: Held__Admin__Mode) {
        self = UInt8(exactly: mode.rawValue).flatMap(IndexMode.init(rawValue:)) ?? .unspecified
    }

    fileprivate var held: Held__Admin__Mode { Held__Admin__Mode(rawValue: UInt32(rawValue)) }
}

/// An index over several fields.
package struct IndexMessage: TableMessage, Equatable, Sendable {
    /// A field of an index.
    package struct Field: TableMessage, Equatable, Sendable {
        /// As `firestore.indexes.json` writes it.
        package var path: String
        package var mode: IndexMode
        /// Of a vector; else 0.
        package var dimension: Int32

        package init(path: String, mode: IndexMode, dimension: Int32 = 0) {
            self.path = path
            self.mode = mode
            self.dimension = dimension
        }

        static let table = unsafe MessageTable(
            Field(path: "", mode: .unspecified), held__admin__index_field__init, hearth__admin__v1__index_field__init,
            [.text(\.path, \.field_path), .enumeration(\.mode, \.mode), .number(\.dimension, \.dimension)])
    }

    package var collectionGroup: String
    /// Entries of all these collections lie together.
    package var spansGroup: Bool
    package var fields: [Field]
    /// Of an index for searches; else empty.
    package var textLanguage: String

    package init(collectionGroup: String, spansGroup: Bool, fields: [Field], textLanguage: String = "") {
        self.collectionGroup = collectionGroup
        self.spansGroup = spansGroup
        self.fields = fields
        self.textLanguage = textLanguage
    }

    static let table = unsafe MessageTable(
        IndexMessage(collectionGroup: "", spansGroup: false, fields: []), held__admin__index__init,
        hearth__admin__v1__index__init,
        [
            .text(\.collectionGroup, \.collection_group), .flag(\.spansGroup, \.spans_group),
            .messages(\.fields, \.fields, \.n_fields), .text(\.textLanguage, \.text_language),
        ])
}

/// What holds for a single field.
package struct FieldOverrideMessage: TableMessage, Equatable, Sendable {
    /// An index of the field.
    package struct SingleFieldIndex: TableMessage, Equatable, Sendable {
        package var spansGroup: Bool
        package var mode: IndexMode

        package init(spansGroup: Bool, mode: IndexMode) {
            self.spansGroup = spansGroup
            self.mode = mode
        }

        static let table = unsafe MessageTable(
            SingleFieldIndex(spansGroup: false, mode: .unspecified), held__admin__single_field_index__init,
            hearth__admin__v1__single_field_index__init,
            [.flag(\.spansGroup, \.spans_group), .enumeration(\.mode, \.mode)])
    }

    package var collectionGroup: String
    /// `*` stands for all fields without an override.
    package var fieldPath: String
    /// Nil leaves the indexes as they would be without the override.
    package var indexes: [SingleFieldIndex]?
    /// Documents expire at the time in the field.
    package var ttl: Bool

    package init(collectionGroup: String, fieldPath: String, indexes: [SingleFieldIndex]?, ttl: Bool) {
        self.collectionGroup = collectionGroup
        self.fieldPath = fieldPath
        self.indexes = indexes
        self.ttl = ttl
    }

    static let table = unsafe MessageTable(
        FieldOverrideMessage(collectionGroup: "", fieldPath: "", indexes: nil, ttl: false),
        held__admin__field_override__init, hearth__admin__v1__field_override__init,
        [
            .text(\.collectionGroup, \.collection_group), .text(\.fieldPath, \.field_path), .flag(\.ttl, \.ttl),
            .custom { held, message in
                guard unsafe held.sets_indexes != 0 else { return }
                message.indexes = try unsafe elements(held.indexes, held.n_indexes) {
                    try unsafe $0.lend { try SingleFieldIndex(wire: $0) }
                }
            } write: { message, held, arena in
                unsafe held.sets_indexes = message.indexes != nil ? 1 : 0
                unsafe (held.n_indexes, held.indexes) = arena.list(message.indexes ?? []) {
                    unsafe arena.bytes($0.encode)
                }
            },
        ])
}

package struct ApplyIndexesRequest: TableMessage, Equatable, Sendable {
    package var database: String
    package var indexes: [IndexMessage]
    package var fieldOverrides: [FieldOverrideMessage]

    package init(database: String, indexes: [IndexMessage], fieldOverrides: [FieldOverrideMessage]) {
        self.database = database
        self.indexes = indexes
        self.fieldOverrides = fieldOverrides
    }

    static let table = unsafe MessageTable(
        ApplyIndexesRequest(database: "", indexes: [], fieldOverrides: []), held__admin__apply_indexes_request__init,
        hearth__admin__v1__apply_indexes_request__init,
        [
            .text(\.database, \.database), .messages(\.indexes, \.indexes, \.n_indexes),
            .messages(\.fieldOverrides, \.field_overrides, \.n_field_overrides),
        ])
}

package struct ListIndexesRequest: TableMessage, Equatable, Sendable {
    package var database: String

    package init(database: String) { self.database = database }

    static let table = unsafe MessageTable(
        ListIndexesRequest(database: ""), held__admin__list_indexes_request__init,
        hearth__admin__v1__list_indexes_request__init,
        [.text(\.database, \.database)])
}

package struct ListIndexesResponse: TableMessage, Equatable, Sendable {
    /// The state of an index that is not declared, and that queries lacked.
    package static let wanted = "WANTED"

    /// An index or an override, and how far it is.
    package struct Entry: TableMessage, Equatable, Sendable {
        /// `BUILDING`, `READY`, `DROPPING`, `WAITING` or `FAILED`; or ``ListIndexesResponse/wanted``.
        package var state: String
        /// The entry of `firestore.indexes.json`.
        package var json: String
        /// About how many entries an index has, and the bytes that they take on disk; 0 if there is no estimate. Of an
        /// index that is wanted, how many queries lacked it, and the documents that these read.
        package var entries: Int64
        package var bytes: Int64
        /// Why the build cannot continue now, in the state `FAILED`; else empty.
        package var failure: String

        package init(state: String, json: String, entries: Int64 = 0, bytes: Int64 = 0, failure: String = "") {
            self.state = state
            self.json = json
            self.entries = entries
            self.bytes = bytes
            self.failure = failure
        }

        static let table = unsafe MessageTable(
            Entry(state: "", json: ""), held__admin__listed_index__init, hearth__admin__v1__listed_index__init,
            [
                .text(\.state, \.state), .text(\.json, \.entry), .number(\.entries, \.index_entries),
                .number(\.bytes, \.index_bytes), .text(\.failure, \.failure),
            ])
    }

    package var entries: [Entry]

    package init(entries: [Entry]) { self.entries = entries }

    static let table = unsafe MessageTable(
        ListIndexesResponse(entries: []), held__admin__list_indexes_response__init,
        hearth__admin__v1__list_indexes_response__init,
        [.messages(\.entries, \.entries, \.n_entries)])
}
