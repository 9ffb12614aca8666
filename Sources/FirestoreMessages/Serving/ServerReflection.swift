// The messages of `grpc.reflection.v1.ServerReflection`; those of v1alpha are the same.

package import Basics
package import DocumentModel

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

    package private(set) var host = ""
    package private(set) var question = Question.none

    package init(wire: RawSpan) throws {
        typealias Field = FieldNumber.Reflection.ServerReflectionRequest
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.host: host = try reader.string(tag)
            case Field.fileByFilename: question = .file(name: try reader.string(tag))
            case Field.fileContainingSymbol: question = .symbol(try reader.string(tag))
            case Field.fileContainingExtension:
                try reader.skip(tag)
                question = .anExtension
            case Field.allExtensionNumbersOfType: question = .extensions(of: try reader.string(tag))
            case Field.listServices:
                try reader.skip(tag)
                question = .services
            default: try reader.skip(tag)
            }
        }
    }
}

/// Writes a `ServerReflectionResponse`: what it answers, then one of the answers.
package enum ServerReflectionResponseWriter {
    private typealias Field = FieldNumber.Reflection.ServerReflectionResponse

    /// Appends the request that is answered.
    ///
    /// - Parameter original: the bytes of the request.
    package static func append(host: String, original: [UInt8], to writer: inout WireWriter) {
        writer.writeIfSet(Field.validHost, string: host)
        writer.appendField(Field.originalRequest, bytes: original)
    }

    /// Appends files, each as the bytes of a `FileDescriptorSet`.
    ///
    /// The set's one field has the number of `FileDescriptorResponse.file_descriptor_proto`, so that sets in a row are that
    /// message.
    package static func append(fileSets sets: [[UInt8]], to writer: inout WireWriter) {
        writer.withLengthPrefix(field: Field.fileDescriptorResponse) { list in
            for set in sets { list.append(set) }
        }
    }

    /// Appends that a type has no extensions.
    package static func append(noExtensionsOf type: String, to writer: inout WireWriter) {
        writer.withLengthPrefix(field: Field.allExtensionNumbersResponse) { answer in
            answer.appendField(FieldNumber.Reflection.ExtensionNumberResponse.baseTypeName, string: type)
        }
    }

    /// Appends the full names of services.
    package static func append(services: [String], to writer: inout WireWriter) {
        writer.withLengthPrefix(field: Field.listServicesResponse) { list in
            for name in services {
                list.withLengthPrefix(field: FieldNumber.Reflection.ListServiceResponse.service) { service in
                    service.appendField(FieldNumber.Reflection.ServiceResponse.name, string: name)
                }
            }
        }
    }

    /// Appends that the question has no answer.
    package static func append(_ code: StatusCode, _ text: String, to writer: inout WireWriter) {
        writer.withLengthPrefix(field: Field.errorResponse) { error in
            error.appendField(FieldNumber.Reflection.ErrorResponse.errorCode, varint: UInt64(code.rawValue))
            error.appendField(FieldNumber.Reflection.ErrorResponse.errorMessage, string: text)
        }
    }
}
