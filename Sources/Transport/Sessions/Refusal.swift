// What a peer can do wrong on one stream that ends this call and no other.

package import DocumentModel

/// Why a call was ended by the transport itself.
package enum Refusal: Equatable, Sendable {
    case unknownMethod(UInt16)
    case takesOneMessage(Method)
    case tooManyStreams(max: UInt32)
    case messageTooLarge(max: UInt32)
    case incompleteMessagesTooLarge(max: Int)
    case noWindow
    case endedInsideMessage
    case windowTooLarge

    /// The status that the call ends with.
    package var code: StatusCode {
        switch self {
        case .unknownMethod: .unimplemented
        case .takesOneMessage, .endedInsideMessage, .windowTooLarge: .invalidArgument
        case .tooManyStreams, .messageTooLarge, .incompleteMessagesTooLarge, .noWindow: .resourceExhausted
        }
    }
}

extension Refusal: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unknownMethod(let number): "method \(number) is not known here"
        case .takesOneMessage(let method): "\(method.name) takes exactly one message"
        case .tooManyStreams(let max): "more than \(max) calls are open on this connection"
        case .messageTooLarge(let max): "a message exceeds the limit of \(max) bytes"
        case .incompleteMessagesTooLarge(let max): "the connection's incomplete messages exceed \(max) bytes"
        case .noWindow: "a message was sent without window"
        case .endedInsideMessage: "the client ended inside a message"
        case .windowTooLarge: "the window exceeds \(FlowWindow.max) bytes"
        }
    }
}
