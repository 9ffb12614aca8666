// The messages of `hearth.admin.v1`, by which operators' tools talk to a running server.

package import Basics
internal import CFirestoreProto
internal import DocumentModel

/// A message without fields: several requests and responses are.
package struct EmptyMessage: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__admin__checkpoint_request__init, hearth__admin__v1__checkpoint_request__init)

    package init() {}

    package init(wire: RawSpan) throws { try unsafe Self.layout.read(wire) { _ in } }

    package func encode(into writer: inout ByteBuffer) {}
}

/// Where a server listens.
package struct ServerInformation: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(held__admin__server__init, hearth__admin__v1__server__init)

    /// `HOST:PORT`
    package var address: String

    package init(address: String) { self.address = address }

    package init(wire: RawSpan) throws {
        address = try unsafe Self.layout.read(wire) { unsafe $0.address.text }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in unsafe message.address = arena.bytes(address) }
    }
}

package struct BackupRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__admin__backup_request__init, hearth__admin__v1__backup_request__init)

    /// An absolute path on the server's machine.
    package var directory: String

    package init(directory: String) { self.directory = directory }

    package init(wire: RawSpan) throws {
        directory = try unsafe Self.layout.read(wire) { unsafe $0.directory.text }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in unsafe message.directory = arena.bytes(directory) }
    }
}

package struct ForkRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__admin__fork_request__init, hearth__admin__v1__fork_request__init)

    /// An absolute path on the server's machine.
    package var directory: String

    package init(directory: String) { self.directory = directory }

    package init(wire: RawSpan) throws {
        directory = try unsafe Self.layout.read(wire) { unsafe $0.directory.text }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in unsafe message.directory = arena.bytes(directory) }
    }
}

package struct ForkResponse: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__admin__fork_response__init, hearth__admin__v1__fork_response__init)

    /// Of files that could not be shared.
    package var copiedBytes: Int64

    package init(copiedBytes: Int64) { self.copiedBytes = copiedBytes }

    package init(wire: RawSpan) throws {
        copiedBytes = try unsafe Self.layout.read(wire) { unsafe $0.copied_bytes }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, _ in unsafe message.copied_bytes = copiedBytes }
    }
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
package struct IndexMessage: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(held__admin__index__init, hearth__admin__v1__index__init)

    /// A field of an index.
    package struct Field: FirestoreMessage, Equatable, Sendable {
        private static let layout = unsafe MessageLayout(
            held__admin__index_field__init, hearth__admin__v1__index_field__init)

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

        package init(wire: RawSpan) throws {
            self = try unsafe Self.layout.read(wire) { message in
                unsafe Field(
                    path: message.field_path.text, mode: IndexMode(message.mode), dimension: message.dimension)
            }
        }

        package func encode(into writer: inout ByteBuffer) {
            unsafe Self.layout.write(into: &writer) { message, arena in
                unsafe message.field_path = arena.bytes(path)
                unsafe message.mode = mode.held
                unsafe message.dimension = dimension
            }
        }
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

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe IndexMessage(
                collectionGroup: message.collection_group.text, spansGroup: message.spans_group != 0,
                fields: try elements(message.fields, message.n_fields) { try unsafe $0.lend { try Field(wire: $0) } },
                textLanguage: message.text_language.text)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.collection_group = arena.bytes(collectionGroup)
            unsafe message.spans_group = spansGroup ? 1 : 0
            unsafe (message.n_fields, message.fields) = arena.list(fields) { unsafe arena.bytes($0.encode) }
            unsafe message.text_language = arena.bytes(textLanguage)
        }
    }
}

/// What holds for a single field.
package struct FieldOverrideMessage: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__admin__field_override__init, hearth__admin__v1__field_override__init)

    /// An index of the field.
    package struct SingleFieldIndex: FirestoreMessage, Equatable, Sendable {
        private static let layout = unsafe MessageLayout(
            held__admin__single_field_index__init, hearth__admin__v1__single_field_index__init)

        package var spansGroup: Bool
        package var mode: IndexMode

        package init(spansGroup: Bool, mode: IndexMode) {
            self.spansGroup = spansGroup
            self.mode = mode
        }

        package init(wire: RawSpan) throws {
            self = try unsafe Self.layout.read(wire) { message in
                unsafe SingleFieldIndex(spansGroup: message.spans_group != 0, mode: IndexMode(message.mode))
            }
        }

        package func encode(into writer: inout ByteBuffer) {
            unsafe Self.layout.write(into: &writer) { message, _ in
                unsafe message.spans_group = spansGroup ? 1 : 0
                unsafe message.mode = mode.held
            }
        }
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

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            let indexes = try unsafe elements(message.indexes, message.n_indexes) {
                try unsafe $0.lend { try SingleFieldIndex(wire: $0) }
            }
            return unsafe FieldOverrideMessage(
                collectionGroup: message.collection_group.text, fieldPath: message.field_path.text,
                indexes: message.sets_indexes != 0 ? indexes : nil, ttl: message.ttl != 0)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.collection_group = arena.bytes(collectionGroup)
            unsafe message.field_path = arena.bytes(fieldPath)
            unsafe message.sets_indexes = indexes != nil ? 1 : 0
            unsafe (message.n_indexes, message.indexes) = arena.list(indexes ?? []) { unsafe arena.bytes($0.encode) }
            unsafe message.ttl = ttl ? 1 : 0
        }
    }
}

package struct ApplyIndexesRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__admin__apply_indexes_request__init, hearth__admin__v1__apply_indexes_request__init)

    package var database: String
    package var indexes: [IndexMessage]
    package var fieldOverrides: [FieldOverrideMessage]

    package init(database: String, indexes: [IndexMessage], fieldOverrides: [FieldOverrideMessage]) {
        self.database = database
        self.indexes = indexes
        self.fieldOverrides = fieldOverrides
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe ApplyIndexesRequest(
                database: message.database.text,
                indexes: try elements(message.indexes, message.n_indexes) {
                    try unsafe $0.lend { try IndexMessage(wire: $0) }
                },
                fieldOverrides: try elements(message.field_overrides, message.n_field_overrides) {
                    try unsafe $0.lend { try FieldOverrideMessage(wire: $0) }
                })
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.database = arena.bytes(database)
            unsafe (message.n_indexes, message.indexes) = arena.list(indexes) { unsafe arena.bytes($0.encode) }
            unsafe (message.n_field_overrides, message.field_overrides) = arena.list(fieldOverrides) {
                unsafe arena.bytes($0.encode)
            }
        }
    }
}

package struct ListIndexesRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__admin__list_indexes_request__init, hearth__admin__v1__list_indexes_request__init)

    package var database: String

    package init(database: String) { self.database = database }

    package init(wire: RawSpan) throws {
        database = try unsafe Self.layout.read(wire) { unsafe $0.database.text }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in unsafe message.database = arena.bytes(database) }
    }
}

package struct ListIndexesResponse: FirestoreMessage, Equatable, Sendable {
    /// The state of an index that is not declared, and that queries lacked.
    package static let wanted = "WANTED"

    private static let layout = unsafe MessageLayout(
        held__admin__list_indexes_response__init, hearth__admin__v1__list_indexes_response__init)

    /// An index or an override, and how far it is.
    package struct Entry: FirestoreMessage, Equatable, Sendable {
        private static let layout = unsafe MessageLayout(
            held__admin__listed_index__init, hearth__admin__v1__listed_index__init)

        /// `BUILDING`, `READY` or `DROPPING`; or ``ListIndexesResponse/wanted``.
        package var state: String
        /// The entry of `firestore.indexes.json`.
        package var json: String
        /// About how many entries an index has, and the bytes that they take on disk; 0 if there is no estimate. Of an
        /// index that is wanted, how many queries lacked it, and the documents that these read.
        package var entries: Int64
        package var bytes: Int64

        package init(state: String, json: String, entries: Int64 = 0, bytes: Int64 = 0) {
            self.state = state
            self.json = json
            self.entries = entries
            self.bytes = bytes
        }

        package init(wire: RawSpan) throws {
            self = try unsafe Self.layout.read(wire) { message in
                unsafe Entry(
                    state: message.state.text, json: message.entry.text, entries: message.index_entries,
                    bytes: message.index_bytes)
            }
        }

        package func encode(into writer: inout ByteBuffer) {
            unsafe Self.layout.write(into: &writer) { message, arena in
                unsafe message.state = arena.bytes(state)
                unsafe message.entry = arena.bytes(json)
                unsafe message.index_entries = entries
                unsafe message.index_bytes = bytes
            }
        }
    }

    package var entries: [Entry]

    package init(entries: [Entry]) { self.entries = entries }

    package init(wire: RawSpan) throws {
        entries = try unsafe Self.layout.read(wire) { message in
            try unsafe elements(message.entries, message.n_entries) { try unsafe $0.lend { try Entry(wire: $0) } }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_entries, message.entries) = arena.list(entries) { unsafe arena.bytes($0.encode) }
        }
    }
}
