// The messages of `grpc.reflection.v1.ServerReflection`; those of v1alpha are the same.

package import Basics
internal import CFirestoreProto
internal import DocumentModel

/// One question about what the server offers.
package struct ServerReflectionRequest: Sendable {
    /// The oneof of the request.
    package enum Question: Equatable, Sendable {
        /// None that this version knows.
        case none
        case file(name: String)
        case symbol(String)
        case anExtension
        case extensions(of: String)
        case services
    }

    private static let layout = unsafe MessageLayout(
        held__reflection__server_reflection_request__init, grpc__reflection__v1__server_reflection_request__init)

    package let host: String
    package let question: Question

    package init(wire: RawSpan) throws {
        (host, question) = try unsafe Self.layout.read(wire) { message in
            unsafe (message.host.text, Self.question(of: message))
        }
    }

    private static func question(of message: Held__Reflection__ServerReflectionRequest) -> Question {
        switch unsafe message.message_request_case {
        case HELD__REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
            unsafe .file(name: message.file_by_filename.text)
        case HELD__REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
            unsafe .symbol(message.file_containing_symbol.text)
        case HELD__REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION: .anExtension
        case HELD__REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
            unsafe .extensions(of: message.all_extension_numbers_of_type.text)
        case HELD__REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES: .services
        default: .none
        }
    }
}

/// Writes a `ServerReflectionResponse`: what it answers, then one of the answers.
package enum ServerReflectionResponseWriter {
    private typealias Field = FieldNumber.Reflection.ServerReflectionResponse

    /// Appends the request to which this is the response.
    ///
    /// - Parameter original: the bytes of the request.
    package static func append(host: String, original: [UInt8], to writer: inout ByteBuffer) {
        writer.writeIfSet(Field.validHost, string: host)
        writer.appendField(Field.originalRequest, bytes: original)
    }

    /// Appends files, each as the bytes of a `FileDescriptorSet`.
    ///
    /// The set's one field has the number of `FileDescriptorResponse.file_descriptor_proto`, so that sets in a row are
    /// that message.
    package static func append(fileSets sets: [[UInt8]], to writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: Field.fileDescriptorResponse) { list in
            for set in sets { list.append(set) }
        }
    }

    /// Appends that a type has no extensions.
    package static func append(noExtensionsOf type: String, to writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: Field.allExtensionNumbersResponse) { answer in
            answer.appendField(FieldNumber.Reflection.ExtensionNumberResponse.baseTypeName, string: type)
        }
    }

    /// Appends the full names of services.
    package static func append(services: [String], to writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: Field.listServicesResponse) { list in
            for name in services {
                list.withLengthPrefix(field: FieldNumber.Reflection.ListServiceResponse.service) { service in
                    service.appendField(FieldNumber.Reflection.ServiceResponse.name, string: name)
                }
            }
        }
    }

    /// Appends that the question has no answer.
    package static func append(_ code: StatusCode, _ text: String, to writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: Field.errorResponse) { error in
            error.appendField(FieldNumber.Reflection.ErrorResponse.errorCode, varint: UInt64(code.rawValue))
            error.appendField(FieldNumber.Reflection.ErrorResponse.errorMessage, string: text)
        }
    }
}
