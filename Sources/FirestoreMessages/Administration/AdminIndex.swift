// `google.firestore.admin.v1.Index` and the RPCs of indexes.

package import Basics
internal import CFirestoreProto
internal import DocumentModel

/// An index as the admin API describes it.
package struct AdminIndex: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__index__init, google__firestore__admin__v1__index__init)

    /// Which collections a query over the index reads.
    package enum QueryScope: UInt32, Sendable {
        case unspecified = 0
        case collection = 1
        case collectionGroup = 2
        case collectionRecursive = 3
    }

    /// How far an index is.
    package enum State: UInt32, Sendable {
        case unspecified = 0
        case creating = 1
        case ready = 2
        case needsRepair = 3
    }

    /// A field of an index.
    package struct Field: FirestoreMessage, Equatable, Sendable {
        private static let layout = unsafe MessageLayout(
            held__firestore_admin__index__index_field__init, google__firestore__admin__v1__index__index_field__init)

        /// How the field is indexed; `unspecified` if the message has none, or one that is not known.
        package enum Mode: Equatable, Sendable {
            case unspecified
            case ascending
            case descending
            case contains
            /// Of this number of dimensions.
            case vector(Int32)
        }

        /// With backquotes where a segment needs them; `__name__` is the name of the document.
        package var path: String
        package var mode: Mode

        package init(path: String, mode: Mode) {
            self.path = path
            self.mode = mode
        }

        package init(wire: RawSpan) throws {
            self = try unsafe Self.layout.read(wire) { message in
                unsafe Field(path: message.field_path.text, mode: try Self.mode(message))
            }
        }

        private static func mode(_ message: Held__FirestoreAdmin__Index__IndexField) throws -> Mode {
            switch unsafe message.value_mode_case {
            case HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_ORDER:
                switch unsafe message.order.rawValue {
                case 1: return .ascending
                case 2: return .descending
                default: return .unspecified
                }
            case HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_ARRAY_CONFIG:
                return unsafe message.array_config.rawValue == 1 ? .contains : .unspecified
            case HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_VECTOR_CONFIG:
                return .vector(try unsafe message.vector_config.lend { try AdminVectorConfig(wire: $0).dimension })
            default: return .unspecified
            }
        }

        package func encode(into writer: inout ByteBuffer) {
            unsafe Self.layout.write(into: &writer) { message, arena in
                unsafe message.field_path = arena.bytes(path)
                switch mode {
                case .unspecified: break
                case .ascending, .descending:
                    unsafe message.value_mode_case = HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_ORDER
                    unsafe message.order = Held__FirestoreAdmin__Index__IndexField__Order(
                        rawValue: mode == .ascending ? 1 : 2)
                case .contains:
                    unsafe message.value_mode_case = HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_ARRAY_CONFIG
                    unsafe message.array_config = Held__FirestoreAdmin__Index__IndexField__ArrayConfig(rawValue: 1)
                case .vector(let dimension):
                    unsafe message.value_mode_case = HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_VECTOR_CONFIG
                    unsafe message.vector_config = arena.bytes(AdminVectorConfig(dimension: dimension).encode)
                }
            }
        }
    }

    /// `projects/P/databases/D/collectionGroups/C/indexes/I`; empty in a request that creates the index.
    package var name: String
    package var queryScope: QueryScope
    package var fields: [Field]
    package var state: State

    package init(name: String = "", queryScope: QueryScope, fields: [Field], state: State = .unspecified) {
        self.name = name
        self.queryScope = queryScope
        self.fields = fields
        self.state = state
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            guard unsafe message.api_scope.rawValue == 0 else {
                throw RequestError.invalidArgument("Only indexes of the native API are possible.")
            }
            return unsafe AdminIndex(
                name: message.name.text,
                queryScope: QueryScope(rawValue: message.query_scope.rawValue) ?? .unspecified,
                fields: try elements(message.fields, message.n_fields) { try unsafe $0.lend { try Field(wire: $0) } },
                state: State(rawValue: message.state.rawValue) ?? .unspecified)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.name = arena.bytes(name)
            unsafe message.query_scope = Held__FirestoreAdmin__Index__QueryScope(rawValue: queryScope.rawValue)
            unsafe (message.n_fields, message.fields) = arena.list(fields) { unsafe arena.bytes($0.encode) }
            unsafe message.state = Held__FirestoreAdmin__Index__State(rawValue: state.rawValue)
        }
    }
}

/// The vector of an index; `flat` is the only type.
struct AdminVectorConfig: FirestoreMessage {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__index__index_field__vector_config__init,
        google__firestore__admin__v1__index__index_field__vector_config__init)
    private static let flat = unsafe MessageLayout(
        held__firestore_admin__index__index_field__vector_config__flat_index__init,
        google__firestore__admin__v1__index__index_field__vector_config__flat_index__init)

    var dimension: Int32

    init(dimension: Int32) { self.dimension = dimension }

    init(wire: RawSpan) throws {
        dimension = try unsafe Self.layout.read(wire) { unsafe $0.dimension }
    }

    func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.dimension = dimension
            unsafe message.type_case = HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VECTOR_CONFIG__TYPE_FLAT
            unsafe message.flat = Self.flat.make(in: arena) { _, _ in }
        }
    }
}

package struct CreateIndexRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__create_index_request__init, google__firestore__admin__v1__create_index_request__init)

    /// `projects/P/databases/D/collectionGroups/C`
    package var parent: String
    package var index: AdminIndex?

    package init(parent: String, index: AdminIndex?) {
        self.parent = parent
        self.index = index
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe CreateIndexRequest(
                parent: message.parent.text,
                index: try lendLast(message.index, message.n_index) { try AdminIndex(wire: $0) })
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.parent = arena.bytes(parent)
            unsafe (message.n_index, message.index) = arena.optional(index) { $0.encode(into: &$1) }
        }
    }
}

/// A page of indexes.
package struct AdminIndexPage: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__list_indexes_response__init, google__firestore__admin__v1__list_indexes_response__init)

    package var indexes: [AdminIndex]
    /// Empty after the last page.
    package var nextPageToken: String

    package init(indexes: [AdminIndex], nextPageToken: String = "") {
        self.indexes = indexes
        self.nextPageToken = nextPageToken
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe AdminIndexPage(
                indexes: try elements(message.indexes, message.n_indexes) {
                    try unsafe $0.lend { try AdminIndex(wire: $0) }
                },
                nextPageToken: message.next_page_token.text)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_indexes, message.indexes) = arena.list(indexes) { unsafe arena.bytes($0.encode) }
            unsafe message.next_page_token = arena.bytes(nextPageToken)
        }
    }
}
