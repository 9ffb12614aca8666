// `google.longrunning`: work that continues after the reply.

package import Basics
internal import CFirestoreProto
internal import DocumentModel

/// The build of an index, or a change of a field's settings.
package struct LongRunningOperation: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__longrunning__operation__init, google__longrunning__operation__init)

    /// The outcome of an operation.
    package enum Result: Equatable, Sendable {
        case error(StatusMessage)
        case response(AnyMessage)
    }

    /// `projects/P/databases/D/operations/O`
    package var name: String
    package var metadata: AnyMessage?
    /// Nil while the operation continues.
    package var result: Result?

    package init(name: String, metadata: AnyMessage?, result: Result? = nil) {
        self.name = name
        self.metadata = metadata
        self.result = result
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            var result: Result?
            switch unsafe message.result_case {
            case HELD__LONGRUNNING__OPERATION__RESULT_ERROR:
                result = .error(try unsafe message.error.lend { try StatusMessage(wire: $0) })
            case HELD__LONGRUNNING__OPERATION__RESULT_RESPONSE:
                result = .response(try unsafe message.response.lend { try AnyMessage(wire: $0) })
            default: break
            }
            return unsafe LongRunningOperation(
                name: message.name.text,
                metadata: try lendLast(message.metadata, message.n_metadata) { try AnyMessage(wire: $0) },
                result: result)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.name = arena.bytes(name)
            unsafe (message.n_metadata, message.metadata) = arena.optional(metadata) { $0.encode(into: &$1) }
            unsafe message.done = result == nil ? 0 : 1
            switch result {
            case nil: break
            case .error(let status):
                unsafe message.result_case = HELD__LONGRUNNING__OPERATION__RESULT_ERROR
                unsafe message.error = arena.bytes(status.encode)
            case .response(let response):
                unsafe message.result_case = HELD__LONGRUNNING__OPERATION__RESULT_RESPONSE
                unsafe message.response = arena.bytes(response.encode)
            }
        }
    }
}

/// `google.protobuf.Any`: a message with the name of its type.
package struct AnyMessage: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.Protobuf.AnyMessage

    /// The full name of the type after `type.googleapis.com/`.
    package var typeURL: String
    package var value: [UInt8]

    /// - Parameter type: the full name of the message's type.
    package init(_ message: some FirestoreMessage, type: String) {
        typeURL = "type.googleapis.com/\(type)"
        value = message.encodedBytes()
    }

    package init(wire: RawSpan) throws {
        (typeURL, value) = ("", [])
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.typeUrl: typeURL = try reader.string(tag)
            case Field.value: value = try reader.byteArray(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.writeIfSet(Field.typeUrl, string: typeURL)
        writer.writeIfSet(Field.value, bytes: value)
    }
}

/// How far an operation is, for its metadata.
package enum OperationState: UInt32, Sendable {
    case unspecified = 0
    case initializing = 1
    case processing = 2
    case cancelling = 3
    case finalizing = 4
    case successful = 5
    case failed = 6
    case cancelled = 7
}

/// The metadata of the operation that builds an index.
package struct IndexOperationMetadata: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__index_operation_metadata__init,
        google__firestore__admin__v1__index_operation_metadata__init)

    package static let type = "google.firestore.admin.v1.IndexOperationMetadata"

    /// The name of the index.
    package var index: String
    package var state: OperationState

    package init(index: String, state: OperationState) {
        self.index = index
        self.state = state
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe IndexOperationMetadata(
                index: message.index.text, state: OperationState(rawValue: message.state.rawValue) ?? .unspecified)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.index = arena.bytes(index)
            unsafe message.state = Held__FirestoreAdmin__OperationState(rawValue: state.rawValue)
        }
    }
}

/// The metadata of the operation that changes a field's settings.
package struct FieldOperationMetadata: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__field_operation_metadata__init,
        google__firestore__admin__v1__field_operation_metadata__init)

    package static let type = "google.firestore.admin.v1.FieldOperationMetadata"

    /// The name of the field.
    package var field: String
    package var state: OperationState

    package init(field: String, state: OperationState) {
        self.field = field
        self.state = state
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe FieldOperationMetadata(
                field: message.field.text, state: OperationState(rawValue: message.state.rawValue) ?? .unspecified)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.field = arena.bytes(field)
            unsafe message.state = Held__FirestoreAdmin__OperationState(rawValue: state.rawValue)
        }
    }
}

package struct ListOperationsRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__longrunning__list_operations_request__init, google__longrunning__list_operations_request__init)

    /// `projects/P/databases/D`, or with `/operations` after it.
    package var name: String
    package var filter: String
    /// 0 or less means the server's choice.
    package var pageSize: Int32
    package var pageToken: String

    package init(name: String, filter: String = "", pageSize: Int32 = 0, pageToken: String = "") {
        self.name = name
        self.filter = filter
        self.pageSize = pageSize
        self.pageToken = pageToken
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe ListOperationsRequest(
                name: message.name.text, filter: message.filter.text, pageSize: message.page_size,
                pageToken: message.page_token.text)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.name = arena.bytes(name)
            unsafe message.filter = arena.bytes(filter)
            unsafe message.page_size = pageSize
            unsafe message.page_token = arena.bytes(pageToken)
        }
    }
}

/// A page of operations.
package struct OperationPage: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__longrunning__list_operations_response__init, google__longrunning__list_operations_response__init)

    package var operations: [LongRunningOperation]
    /// Empty after the last page.
    package var nextPageToken: String

    package init(operations: [LongRunningOperation], nextPageToken: String = "") {
        self.operations = operations
        self.nextPageToken = nextPageToken
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe OperationPage(
                operations: try elements(message.operations, message.n_operations) {
                    try unsafe $0.lend { try LongRunningOperation(wire: $0) }
                },
                nextPageToken: message.next_page_token.text)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_operations, message.operations) = arena.list(operations) {
                unsafe arena.bytes($0.encode)
            }
            unsafe message.next_page_token = arena.bytes(nextPageToken)
        }
    }
}

package struct WaitOperationRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__longrunning__wait_operation_request__init, google__longrunning__wait_operation_request__init)

    package var name: String
    /// How long to wait; nil for the server's choice. Negative numbers count as 0.
    package var timeoutMilliseconds: UInt64?

    package init(name: String, timeoutMilliseconds: UInt64? = nil) {
        self.name = name
        self.timeoutMilliseconds = timeoutMilliseconds
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe WaitOperationRequest(
                name: message.name.text,
                timeoutMilliseconds: try lendLast(message.timeout, message.n_timeout) { try Self.milliseconds($0) })
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.name = arena.bytes(name)
            unsafe (message.n_timeout, message.timeout) = arena.optional(timeoutMilliseconds) { milliseconds, writer in
                writer.writeIfSet(FieldNumber.Protobuf.Duration.seconds, int64: Int64(milliseconds / 1_000))
                writer.writeIfSet(
                    FieldNumber.Protobuf.Duration.nanos, int64: Int64(milliseconds % 1_000) * 1_000_000)
            }
        }
    }

    /// Reads a `google.protobuf.Duration`.
    private static func milliseconds(_ wire: RawSpan) throws -> UInt64 {
        var (seconds, nanoseconds) = (Int64(0), Int32(0))
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case FieldNumber.Protobuf.Duration.seconds: seconds = try reader.int64(tag)
            case FieldNumber.Protobuf.Duration.nanos: nanoseconds = try reader.int32(tag)
            default: try reader.skip(tag)
            }
        }
        // A year is more than any client waits.
        return UInt64(min(max(0, seconds), 31_536_000)) * 1_000 + UInt64(max(0, nanoseconds) / 1_000_000)
    }
}
