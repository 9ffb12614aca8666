// `google.longrunning`: work that continues after the reply.

package import Basics
internal import CFirestoreProto
internal import DocumentModel

/// The build of an index, or a change of a field's settings.
package struct LongRunningOperation: TableMessage, Equatable, Sendable {
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

    static let table = unsafe MessageTable(
        LongRunningOperation(name: "", metadata: nil), held__longrunning__operation__init,
        google__longrunning__operation__init,
        [
            .text(\.name, \.name), .optional(\.metadata, \.metadata, \.n_metadata),
            .custom { held, message in
                switch unsafe held.result_case {
                case HELD__LONGRUNNING__OPERATION__RESULT_ERROR:
                    message.result = .error(try unsafe held.error.lend { try StatusMessage(wire: $0) })
                case HELD__LONGRUNNING__OPERATION__RESULT_RESPONSE:
                    message.result = .response(try unsafe held.response.lend { try AnyMessage(wire: $0) })
                default: break
                }
            } write: { message, held, arena in
                unsafe held.done = message.result == nil ? 0 : 1
                switch message.result {
                case nil: break
                case .error(let status):
                    unsafe held.result_case = HELD__LONGRUNNING__OPERATION__RESULT_ERROR
                    unsafe held.error = arena.bytes(status.encode)
                case .response(let response):
                    unsafe held.result_case = HELD__LONGRUNNING__OPERATION__RESULT_RESPONSE
                    unsafe held.response = arena.bytes(response.encode)
                }
            },
        ])
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
package struct IndexOperationMetadata: TableMessage, Equatable, Sendable {
    package static let type = "google.firestore.admin.v1.IndexOperationMetadata"

    /// The name of the index.
    package var index: String
    package var state: OperationState

    package init(index: String, state: OperationState) {
        self.index = index
        self.state = state
    }

    static let table = unsafe MessageTable(
        IndexOperationMetadata(index: "", state: .unspecified), held__firestore_admin__index_operation_metadata__init,
        google__firestore__admin__v1__index_operation_metadata__init,
        [.text(\.index, \.index), .enumeration(\.state, \.state)])
}

/// The metadata of the operation that changes a field's settings.
package struct FieldOperationMetadata: TableMessage, Equatable, Sendable {
    package static let type = "google.firestore.admin.v1.FieldOperationMetadata"

    /// The name of the field.
    package var field: String
    package var state: OperationState

    package init(field: String, state: OperationState) {
        self.field = field
        self.state = state
    }

    static let table = unsafe MessageTable(
        FieldOperationMetadata(field: "", state: .unspecified), held__firestore_admin__field_operation_metadata__init,
        google__firestore__admin__v1__field_operation_metadata__init,
        [.text(\.field, \.field), .enumeration(\.state, \.state)])
}

package struct ListOperationsRequest: TableMessage, Equatable, Sendable {
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

    static let table = unsafe MessageTable(
        ListOperationsRequest(name: ""), held__longrunning__list_operations_request__init,
        google__longrunning__list_operations_request__init,
        [
            .text(\.name, \.name), .text(\.filter, \.filter), .number(\.pageSize, \.page_size),
            .text(\.pageToken, \.page_token),
        ])
}

/// A page of operations.
package struct OperationPage: TableMessage, Equatable, Sendable {
    package var operations: [LongRunningOperation]
    /// Empty after the last page.
    package var nextPageToken: String

    package init(operations: [LongRunningOperation], nextPageToken: String = "") {
        self.operations = operations
        self.nextPageToken = nextPageToken
    }

    static let table = unsafe MessageTable(
        OperationPage(operations: []), held__longrunning__list_operations_response__init,
        google__longrunning__list_operations_response__init,
        [.messages(\.operations, \.operations, \.n_operations), .text(\.nextPageToken, \.next_page_token)])
}

package struct WaitOperationRequest: TableMessage, Equatable, Sendable {
    package var name: String
    /// How long to wait; nil for the server's choice. Negative numbers count as 0.
    package var timeoutMilliseconds: UInt64?

    package init(name: String, timeoutMilliseconds: UInt64? = nil) {
        self.name = name
        self.timeoutMilliseconds = timeoutMilliseconds
    }

    static let table = unsafe MessageTable(
        WaitOperationRequest(name: ""), held__longrunning__wait_operation_request__init,
        google__longrunning__wait_operation_request__init,
        [
            .text(\.name, \.name),
            .optional(\.timeoutMilliseconds, \.timeout, \.n_timeout, read: milliseconds) { milliseconds, writer in
                writer.writeIfSet(FieldNumber.Protobuf.Duration.seconds, int64: Int64(milliseconds / 1_000))
                writer.writeIfSet(FieldNumber.Protobuf.Duration.nanos, int64: Int64(milliseconds % 1_000) * 1_000_000)
            },
        ])

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
