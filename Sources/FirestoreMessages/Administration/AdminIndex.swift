// `google.firestore.admin.v1.Index` and the RPCs of indexes.

internal import Basics
internal import CFirestoreProto
internal import DocumentModel

/// An index as the admin API describes it.
package struct AdminIndex: TableMessage, Equatable, Sendable {
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
    package struct Field: TableMessage, Equatable, Sendable {
        /// How the field is indexed; `unspecified` if the message has none, or one that is not known.
        package enum Mode: Equatable, Sendable {
            case unspecified
            case ascending
            case descending
            case contains
            /// Of this number of dimensions.
            case vector(Int32)
            /// For searches: by words, by place, or both.
            case search(text: Bool, geo: Bool)
        }

        /// With backquotes where a segment needs them; `__name__` is the name of the document.
        package var path: String
        package var mode: Mode

        package init(path: String, mode: Mode) {
            self.path = path
            self.mode = mode
        }

        static let table = unsafe MessageTable(
            Field(path: "", mode: .unspecified), held__firestore_admin__index__index_field__init,
            google__firestore__admin__v1__index__index_field__init,
            [
                .text(\.path, \.field_path),
                .custom { held, message in
                    message.mode = try unsafe mode(held)
                } write: { message, held, arena in
                    switch message.mode {
                    case .unspecified: break
                    case .ascending, .descending:
                        unsafe held.value_mode_case = HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_ORDER
                        unsafe held.order = Held__FirestoreAdmin__Index__IndexField__Order(
                            rawValue: message.mode == .ascending ? 1 : 2)
                    case .contains:
                        unsafe held.value_mode_case = HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_ARRAY_CONFIG
                        unsafe held.array_config = Held__FirestoreAdmin__Index__IndexField__ArrayConfig(rawValue: 1)
                    case .vector(let dimension):
                        unsafe held.value_mode_case =
                            HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_VECTOR_CONFIG
                        unsafe held.vector_config = arena.bytes(AdminVectorConfig(dimension: dimension).encode)
                    case .search(let text, let geo):
                        unsafe held.value_mode_case =
                            HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_SEARCH_CONFIG
                        unsafe held.search_config = arena.bytes(AdminSearchConfig(hasText: text, hasGeo: geo).encode)
                    }
                },
            ])

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
            case HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_SEARCH_CONFIG:
                let search = try unsafe message.search_config.lend { try AdminSearchConfig(wire: $0) }
                return .search(text: search.hasText, geo: search.hasGeo)
            default: return .unspecified
            }
        }
    }

    /// `projects/P/databases/D/collectionGroups/C/indexes/I`; empty in a request that creates the index.
    package var name: String
    package var queryScope: QueryScope
    package var fields: [Field]
    package var state: State
    /// The language of the texts of an index for searches (BCP 47); else empty.
    package var textLanguage: String

    package init(
        name: String = "", queryScope: QueryScope, fields: [Field], state: State = .unspecified,
        textLanguage: String = ""
    ) {
        self.name = name
        self.queryScope = queryScope
        self.fields = fields
        self.state = state
        self.textLanguage = textLanguage
    }

    static let table = unsafe MessageTable(
        AdminIndex(queryScope: .unspecified, fields: []), held__firestore_admin__index__init,
        google__firestore__admin__v1__index__init,
        [
            .custom { held, _ in
                guard unsafe held.api_scope.rawValue == 0 else {
                    throw RequestError.invalidArgument("Only indexes of the native API are possible.")
                }
            } write: { _, _, _ in
            },
            .text(\.name, \.name), .enumeration(\.queryScope, \.query_scope), .messages(\.fields, \.fields, \.n_fields),
            .enumeration(\.state, \.state),
            .custom { held, message in
                message.textLanguage =
                    try unsafe lendLast(held.search_index_options, held.n_search_index_options) {
                        try AdminSearchOptions(wire: $0).textLanguage
                    } ?? ""
            } write: { message, held, arena in
                if message.textLanguage.isEmpty { return }
                unsafe (held.n_search_index_options, held.search_index_options) = arena.optional(
                    AdminSearchOptions(textLanguage: message.textLanguage)
                ) { $0.encode(into: &$1) }
            },
        ])
}

/// The vector of an index; `flat` is the only type.
struct AdminVectorConfig: TableMessage {
    private static let flat = unsafe MessageLayout(
        held__firestore_admin__index__index_field__vector_config__flat_index__init,
        google__firestore__admin__v1__index__index_field__vector_config__flat_index__init)

    var dimension: Int32

    static let table = unsafe MessageTable(
        AdminVectorConfig(dimension: 0), held__firestore_admin__index__index_field__vector_config__init,
        google__firestore__admin__v1__index__index_field__vector_config__init,
        [
            .number(\.dimension, \.dimension),
            .custom { _, _ in
            } write: { _, held, arena in
                unsafe held.type_case = HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VECTOR_CONFIG__TYPE_FLAT
                unsafe held.flat = flat.make(in: arena) { _, _ in }
            },
        ])
}

/// How a field is indexed for searches. Words are indexed in one way, which is the only one that the API has.
struct AdminSearchConfig: FirestoreMessage {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__index__index_field__search_config__init,
        google__firestore__admin__v1__index__index_field__search_config__init)
    private static let text = unsafe MessageLayout(
        held__firestore_admin__index__index_field__search_config__search_text_spec__init,
        google__firestore__admin__v1__index__index_field__search_config__search_text_spec__init)
    private static let textIndex = unsafe MessageLayout(
        held__firestore_admin__index__index_field__search_config__search_text_index_spec__init,
        google__firestore__admin__v1__index__index_field__search_config__search_text_index_spec__init)
    private static let tokenized = Held__FirestoreAdmin__Index__IndexField__SearchConfig__TextIndexType(rawValue: 1)
    private static let global = Held__FirestoreAdmin__Index__IndexField__SearchConfig__TextMatchType(rawValue: 1)

    var hasText: Bool
    var hasGeo: Bool

    init(hasText: Bool, hasGeo: Bool) {
        self.hasText = hasText
        self.hasGeo = hasGeo
    }

    /// - Throws: `INVALID_ARGUMENT` for another way in which words are indexed.
    init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            _ = try unsafe lendLast(message.text_spec, message.n_text_spec) { try Self.checkText($0) }
            return unsafe AdminSearchConfig(hasText: message.n_text_spec > 0, hasGeo: message.n_geo_spec > 0)
        }
    }

    private static func checkText(_ wire: RawSpan) throws {
        try unsafe text.read(wire) { message in
            _ = try unsafe elements(message.index_specs, message.n_index_specs) { spec in
                try unsafe spec.lend { try checkTextIndex($0) }
            }
        }
    }

    private static func checkTextIndex(_ wire: RawSpan) throws {
        try unsafe textIndex.read(wire) { message in
            guard unsafe message.index_type == tokenized, unsafe message.match_type == global else {
                throw RequestError.invalidArgument("Words are indexed as TOKENIZED and matched by MATCH_GLOBALLY.")
            }
        }
    }

    func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_text_spec, message.text_spec) = arena.optional(hasText ? () : nil) { _, writer in
                Self.encodeText(into: &writer)
            }
            unsafe (message.n_geo_spec, message.geo_spec) = arena.optional(hasGeo ? () : nil) { _, _ in }
        }
    }

    private static func encodeText(into writer: inout ByteBuffer) {
        unsafe text.write(into: &writer) { message, arena in
            unsafe (message.n_index_specs, message.index_specs) = arena.optional(()) { _, writer in
                unsafe textIndex.write(into: &writer) { index, _ in
                    unsafe index.index_type = tokenized
                    unsafe index.match_type = global
                }
            }
        }
    }
}

/// What holds for all texts of an index for searches.
struct AdminSearchOptions: FirestoreMessage {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__index__search_index_options__init,
        google__firestore__admin__v1__index__search_index_options__init)

    var textLanguage: String

    init(textLanguage: String) { self.textLanguage = textLanguage }

    /// - Throws: `UNIMPLEMENTED` for a language that each document names.
    init(wire: RawSpan) throws {
        textLanguage = try unsafe Self.layout.read(wire) { message in
            guard unsafe message.text_language_override_field_path.text.isEmpty else {
                throw RequestError(
                    .unimplemented, "The option text_language_override_field_path of indexes is not implemented.")
            }
            return unsafe message.text_language.text
        }
    }

    func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.text_language = arena.bytes(textLanguage)
        }
    }
}

package struct CreateIndexRequest: TableMessage, Equatable, Sendable {
    /// `projects/P/databases/D/collectionGroups/C`
    package var parent: String
    package var index: AdminIndex?

    package init(parent: String, index: AdminIndex?) {
        self.parent = parent
        self.index = index
    }

    static let table = unsafe MessageTable(
        CreateIndexRequest(parent: "", index: nil), held__firestore_admin__create_index_request__init,
        google__firestore__admin__v1__create_index_request__init,
        [.text(\.parent, \.parent), .optional(\.index, \.index, \.n_index)])
}

/// A page of indexes.
package struct AdminIndexPage: TableMessage, Equatable, Sendable {
    package var indexes: [AdminIndex]
    /// Empty after the last page.
    package var nextPageToken: String

    package init(indexes: [AdminIndex], nextPageToken: String = "") {
        self.indexes = indexes
        self.nextPageToken = nextPageToken
    }

    static let table = unsafe MessageTable(
        AdminIndexPage(indexes: []), held__firestore_admin__list_indexes_response__init,
        google__firestore__admin__v1__list_indexes_response__init,
        [.messages(\.indexes, \.indexes, \.n_indexes), .text(\.nextPageToken, \.next_page_token)])
}
