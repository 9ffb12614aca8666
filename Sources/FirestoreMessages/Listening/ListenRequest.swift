package import Basics
internal import CFirestoreProto
package import DocumentModel

/// A message of the client's side of a Listen stream: adds a target or removes one.
package struct ListenRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__listen_request__init, google__firestore__v1__listen_request__init)

    /// What the message asks for.
    package enum Change: Equatable, Sendable {
        case add(ListenTarget)
        /// The id of the target to remove.
        case remove(Int32)
    }

    /// `projects/{project}/databases/{database}`; not checked.
    package var database: String
    /// Nil where the sender set none, which servers refuse.
    package var change: Change?

    package init(database: String, _ change: Change?) {
        self.database = database
        self.change = change
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            var change: Change?
            switch unsafe message.target_change_case {
            case HELD__LISTEN_REQUEST__TARGET_CHANGE_ADD_TARGET:
                change = .add(try unsafe ListenTarget(message.add_target))
            case HELD__LISTEN_REQUEST__TARGET_CHANGE_REMOVE_TARGET: change = .remove(unsafe message.remove_target)
            default: break
            }
            return ListenRequest(database: unsafe message.database.text, change)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.database = arena.bytes(database)
            switch change {
            case .add(let target):
                unsafe message.target_change_case = HELD__LISTEN_REQUEST__TARGET_CHANGE_ADD_TARGET
                unsafe message.add_target = target.message(in: arena)
            case .remove(let id):
                unsafe message.target_change_case = HELD__LISTEN_REQUEST__TARGET_CHANGE_REMOVE_TARGET
                unsafe message.remove_target = id
            case nil: break
            }
        }
    }
}

/// Documents or a query whose changes a client wants to receive.
package struct ListenTarget: Equatable, Sendable {
    private static let layout = unsafe MessageLayout(held__target__init, google__firestore__v1__target__init)
    private static let query = unsafe MessageLayout(
        held__target__query_target__init, google__firestore__v1__target__query_target__init)
    private static let documents = unsafe MessageLayout(
        held__target__documents_target__init, google__firestore__v1__target__documents_target__init)
    private static let expectedCount = unsafe MessageLayout(
        google__protobuf__int32_value__init, google__protobuf__int32_value__init)

    /// What is listened to.
    package enum Kind: Equatable, Sendable {
        /// Resource names of documents, which need not exist.
        case documents([String])
        /// The documents root of a database or a document, and a query below it; nil where the sender set none.
        case query(parent: String, StructuredQuery?)
        /// A query that breaks a rule: servers refuse the target with this error, and the stream continues.
        case invalidQuery(parent: String, RequestError)
        /// A pipeline, which is not supported.
        case pipeline
    }

    /// The state that the client has from an earlier stream.
    package enum Resume: Equatable, Sendable {
        /// A token that the server has sent. It may be empty.
        case token([UInt8])
        case readTime(TimestampValue)
    }

    /// Nil where the sender set none, which servers refuse.
    package var kind: Kind?
    /// Positive; 0 lets the server choose.
    package var id: Int32
    /// Nil for a client that has no state.
    package var resume: Resume?
    /// The target ends after its first snapshot.
    package var once: Bool
    /// The number of documents that the client has from before `resume`; nil if it did not say.
    package var expectedCount: Int32?

    package init(
        _ kind: Kind?, id: Int32, resume: Resume? = nil, once: Bool = false, expectedCount: Int32? = nil
    ) {
        self.kind = kind
        self.id = id
        self.resume = resume
        self.once = once
        self.expectedCount = expectedCount
    }

    fileprivate init(_ message: UnsafeMutablePointer<Held__Target>?) throws {
        guard let target = unsafe message?.pointee else {
            preconditionFailure("a oneof's case is set without its member")
        }
        unsafe self.init(
            try Self.kind(target), id: target.target_id, resume: Self.resume(target), once: target.once != 0,
            expectedCount: target.expected_count?.pointee.value)
    }

    private static func kind(_ target: Held__Target) throws -> Kind? {
        switch unsafe target.target_type_case {
        case HELD__TARGET__TARGET_TYPE_QUERY:
            guard let query = unsafe target.query?.pointee else { return nil }
            let hasQuery = unsafe query.query_type_case == HELD__TARGET__QUERY_TARGET__QUERY_TYPE_STRUCTURED_QUERY
            let parent = unsafe query.parent.text
            guard hasQuery else { return .query(parent: parent, nil) }
            do {
                return .query(
                    parent: parent, try unsafe query.structured_query.lend { try StructuredQuery(wire: $0) })
            } catch let error as RequestError {
                return .invalidQuery(parent: parent, error)
            }
        case HELD__TARGET__TARGET_TYPE_DOCUMENTS:
            guard let documents = unsafe target.documents?.pointee else { return nil }
            return unsafe .documents(elements(documents.documents, documents.n_documents) { unsafe $0.text })
        case HELD__TARGET__TARGET_TYPE_PIPELINE_QUERY: return .pipeline
        default: return nil
        }
    }

    private static func resume(_ target: Held__Target) -> Resume? {
        switch unsafe target.resume_type_case {
        case HELD__TARGET__RESUME_TYPE_RESUME_TOKEN: .token(unsafe target.resume_token.array)
        case HELD__TARGET__RESUME_TYPE_READ_TIME: .readTime(unsafe TimestampValue(target.read_time))
        default: nil
        }
    }

    fileprivate func message(in arena: borrowing MessageArena) -> UnsafeMutablePointer<Held__Target> {
        unsafe Self.layout.make(in: arena) { target, arena in
            unsafe target.target_id = id
            unsafe target.once = once ? 1 : 0
            if let expectedCount {
                unsafe target.expected_count = Self.expectedCount.make(in: arena) { number, _ in
                    unsafe number.value = expectedCount
                }
            }
            unsafe setKind(of: &target, in: arena)
            switch resume {
            case .token(let token):
                unsafe target.resume_type_case = HELD__TARGET__RESUME_TYPE_RESUME_TOKEN
                unsafe target.resume_token = arena.bytes(token)
            case .readTime(let time):
                unsafe target.resume_type_case = HELD__TARGET__RESUME_TYPE_READ_TIME
                unsafe target.read_time = arena.timestamp(time)
            case nil: break
            }
        }
    }

    private func setKind(of target: inout Held__Target, in arena: borrowing MessageArena) {
        switch kind {
        case .documents(let names):
            unsafe target.target_type_case = HELD__TARGET__TARGET_TYPE_DOCUMENTS
            unsafe target.documents = Self.documents.make(in: arena) { documents, arena in
                unsafe (documents.n_documents, documents.documents) = arena.list(names) { unsafe arena.bytes($0) }
            }
        case .query(let parent, let structured):
            unsafe target.target_type_case = HELD__TARGET__TARGET_TYPE_QUERY
            unsafe target.query = Self.query.make(in: arena) { query, arena in
                unsafe query.parent = arena.bytes(parent)
                guard let structured else { return }
                unsafe query.query_type_case = HELD__TARGET__QUERY_TARGET__QUERY_TYPE_STRUCTURED_QUERY
                unsafe query.structured_query = arena.bytes { structured.encode(into: &$0) }
            }
        case .invalidQuery, .pipeline, nil: break
        }
    }
}
