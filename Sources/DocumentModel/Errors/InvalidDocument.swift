// Malformed or forbidden bytes of a message, value or document: the one typed error of the wire layer.

import Basics

/// What is wrong with some wire bytes, and where.
///
/// Always the sender's fault; answered as `INVALID_ARGUMENT`.
@usableFromInline package struct InvalidDocument: Error, Sendable, Equatable {
    /// The rule that is broken.
    package var reason: Reason
    /// Bytes from the start of the span that was read to the invalid place.
    package var offset: Int
    /// The field concerned, quoted as by ``FieldPath`` with array positions as `[3]`; empty when not known.
    package var fieldPath: String

    @usableFromInline package init(_ reason: Reason, offset: Int, fieldPath: String = "") {
        self.reason = reason
        self.offset = offset
        self.fieldPath = fieldPath
    }

    /// The rules that wire bytes can break.
    @usableFromInline package enum Reason: UInt8, Sendable, Equatable {
        // The form of protobuf messages.
        case truncated
        case varintTooLong
        case invalidTag
        case groupNotSupported
        case wrongWireType
        case invalidUTF8
        case nestedTooDeeply
        case messageTooDeep
        case tooManyFields
        // The rules of documents.
        case valueTypeMissing
        case pipelineValue
        case fieldNameEmpty
        case fieldNameTooLong
        case fieldNameReserved
        case fieldPathTooLong
        case stringTooLong
        case bytesTooLong
        case timestampOutOfRange
        case geoPointOutOfRange
        case arrayInArray
        case invalidReference
        case invalidVector
        case vectorTooLong
        case vectorInArray
        case vectorWithNaN
        case invalidSentinel
        case invalidRegexOption
        case documentTooLarge
    }

    /// The text sent to the client: the reason, then the field or the byte offset.
    package var message: String {
        fieldPath.isEmpty ? "\(reason.text) (at byte \(offset))" : "\(reason.text) (field \(fieldPath), byte \(offset))"
    }
}

extension InvalidDocument: CustomStringConvertible {
    @usableFromInline package var description: String { message }
}

extension InvalidDocument.Reason {
    /// The rule as a sentence for people, without place.
    package var text: String {
        switch self {
        case .truncated: "The message ends in the middle of a field."
        case .varintTooLong: "A varint does not fit in 64 bits."
        case .invalidTag: "A field tag is not valid."
        case .groupNotSupported: "Groups are not supported."
        case .wrongWireType: "A field has the wrong wire type."
        case .invalidUTF8: "A string is not valid UTF-8."
        case .nestedTooDeeply: "Maps and arrays may be nested at most \(Limits.nestingDepth) levels deep."
        case .messageTooDeep: "Messages are nested too deeply."
        case .tooManyFields: "A message has too many fields."
        case .valueTypeMissing: "A value has no type set."
        case .pipelineValue: "Field references, functions, pipelines and variables cannot be stored."
        case .fieldNameEmpty: "A field name is empty."
        case .fieldNameTooLong: "A field name is longer than \(Limits.fieldNameBytes) bytes."
        case .fieldNameReserved: "A field name matching __.*__ is reserved."
        case .fieldPathTooLong: "property path is longer than \(Limits.fieldPathBytes) bytes."
        case .stringTooLong: "A string value is longer than \(Limits.stringOrBytesValueBytes) bytes."
        case .bytesTooLong: "A bytes value is longer than \(Limits.stringOrBytesValueBytes) bytes."
        case .timestampOutOfRange:
            "A timestamp must lie between 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999999Z."
        case .geoPointOutOfRange: "A latitude must lie in -90...90 and a longitude in -180...180."
        case .arrayInArray: "Nested arrays are not allowed."
        case .invalidReference: "A reference value is not a valid document name."
        case .invalidVector: "A vector must hold exactly __type__ and value, an array of doubles."
        case .vectorTooLong: "A vector may have at most \(Limits.vectorDimension) dimensions."
        case .vectorInArray: "Cannot convert a vector value in an array value."
        case .vectorWithNaN: "Vector cannot contain NaN values."
        case .invalidSentinel:
            "A map with the reserved key of a BSON value must hold that key alone, with a value of its kind."
        case .invalidRegexOption: "Invalid regex option: only i, m, s, u and x are known."
        case .documentTooLarge: "The document is larger than \(Limits.documentBytes) bytes."
        }
    }
}

extension RequestError {
    /// `INVALID_ARGUMENT` for a malformed value or message, with the message that the client receives.
    package init(_ invalid: InvalidDocument, documentName: String? = nil) {
        self.init(
            .invalidArgument, invalid.message, documentName: documentName,
            fieldPath: invalid.fieldPath.isEmpty ? nil : invalid.fieldPath)
    }
}
