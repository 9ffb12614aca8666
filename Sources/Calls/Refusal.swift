// What a peer can do wrong on one stream that ends this call and no other.

package import Basics

/// Why a call was ended by the transport itself.
package enum Refusal: Equatable, Sendable {
    case unknownMethod(UInt16)
    /// Of the procedure of this name.
    case takesOneMessage(String)
    case tooManyStreams(max: UInt32)
    case messageTooLarge(max: UInt32)
    case incompleteMessagesTooLarge(max: Int)
    case noWindow
    case endedInsideMessage
    case windowTooLarge(max: UInt32)
    // Of gRPC alone.
    case tooLate
    case unknownPath(String)
    /// The procedure is known and not served; the text for the client.
    case notImplemented(String)
    /// Of the procedure of this name.
    case messageCount(String)
    case metadataTooLarge(max: Int)
    case repeatedAuthorization
    case malformedTimeout
    case unsupportedEncoding
    case undeclaredCompression
    case malformedCompression
    case reservedFlag(UInt8)
    case endedInsideGRPCMessage

    /// The status that the call ends with.
    package var code: StatusCode {
        switch self {
        case .unknownMethod, .unknownPath, .notImplemented, .messageCount, .unsupportedEncoding: .unimplemented
        case .takesOneMessage, .endedInsideMessage, .windowTooLarge, .repeatedAuthorization: .invalidArgument
        case .tooManyStreams, .messageTooLarge, .incompleteMessagesTooLarge, .noWindow, .metadataTooLarge:
            .resourceExhausted
        case .tooLate: .deadlineExceeded
        // What gRPC's own libraries answer to a request that is not framed as it should be.
        case .malformedTimeout, .undeclaredCompression, .malformedCompression, .reservedFlag, .endedInsideGRPCMessage:
            .internal
        }
    }
}

extension Refusal: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unknownMethod(let number): "unknown method number \(number)"
        case .takesOneMessage(let name): "\(name) takes exactly one message"
        case .tooManyStreams(let max): "more than \(max) calls are open on this connection"
        case .messageTooLarge(let max): "a message exceeds the limit of \(max) bytes"
        case .incompleteMessagesTooLarge(let max): "the incomplete messages of the connection exceed \(max) bytes"
        case .noWindow: "a message exceeds the flow-control window"
        case .endedInsideMessage: "the client ended the call inside a message"
        case .windowTooLarge(let max): "the window exceeds \(max) bytes"
        case .tooLate: "a message did not arrive in time"
        case .unknownPath(let path): "unknown method \(path)"
        case .notImplemented(let text): text
        case .messageCount(let name): "\(name) takes exactly one message"
        case .metadataTooLarge(let max): "the metadata of the request exceeds the limit of \(max) bytes"
        case .repeatedAuthorization: "the request has more than one authorization"
        case .malformedTimeout: "grpc-timeout is malformed"
        case .unsupportedEncoding: "unsupported grpc-encoding; supported are: \(MessageEncodingNames.accepted)"
        case .undeclaredCompression: "a message is compressed, but the request names no grpc-encoding"
        case .malformedCompression: "a compressed message is damaged"
        case .reservedFlag(let flag): "a message begins with \(flag), which is neither 0 nor 1"
        case .endedInsideGRPCMessage: "the request ended inside a message"
        }
    }
}

/// The names of compressions in gRPC's metadata.
package enum MessageEncodingNames {
    /// What `grpc-accept-encoding` says: what a client may use.
    package static let accepted = "identity,deflate,gzip"
}
