// What a peer can do wrong that makes the rest of its bytes meaningless: the connection ends with GOAWAY.

package import Basics

/// A breach of the protocol by the other side that ends the connection.
package enum ProtocolViolation: Error, Equatable, Sendable {
    case frameTooLarge(length: UInt32, max: Int)
    case unknownKind(UInt8)
    case kindFromWrongSide(FrameKind)
    case unknownFlags(FrameKind, UInt8)
    case wrongLength(FrameKind, UInt32)
    case helloExpected
    case secondHello
    case unsupportedVersion(UInt16)
    case malformedSettings
    case streamExpected(FrameKind)
    case noStreamExpected(FrameKind)
    case streamNotIncreasing(UInt32)
    case streamNeverOpened(FrameKind, UInt32)
    case messageAfterEnd(UInt32)
    case unknownStatus(UInt16)
    case malformedCredential
    case tooManyCredentials

    /// What GOAWAY carries.
    package var code: StatusCode {
        switch self {
        case .frameTooLarge: .resourceExhausted
        case .unsupportedVersion: .unimplemented
        case .tooManyCredentials: .resourceExhausted
        default: .invalidArgument
        }
    }
}

extension ProtocolViolation: CustomStringConvertible {
    package var description: String {
        switch self {
        case .frameTooLarge(let length, let max): "a frame of \(length) bytes exceeds the limit of \(max)"
        case .unknownKind(let kind): "unknown frame kind \(kind)"
        case .kindFromWrongSide(let kind): "this peer must not send \(kind.name)"
        case .unknownFlags(let kind, let flags): "\(kind.name) has unknown flags 0x\(String(flags, radix: 16))"
        case .wrongLength(let kind, let length): "\(kind.name) must not have \(length) bytes of payload"
        case .helloExpected: "the first frame must be HELLO"
        case .secondHello: "HELLO may be sent only once"
        case .unsupportedVersion(let version):
            "protocol version \(version) is not supported; the supported version is \(Settings.protocolVersion)"
        case .malformedSettings: "the settings of HELLO are malformed"
        case .streamExpected(let kind): "\(kind.name) must name a stream"
        case .noStreamExpected(let kind): "\(kind.name) must not name a stream"
        case .streamNotIncreasing(let stream): "stream \(stream) is not greater than the streams before it"
        case .streamNeverOpened(let kind, let stream): "\(kind.name) for stream \(stream), which was never opened"
        case .messageAfterEnd(let stream): "a message on stream \(stream) after the end of the stream"
        case .unknownStatus(let code): "\(code) is not a status code"
        case .malformedCredential: "the token of CREDENTIAL is not visible ASCII"
        case .tooManyCredentials: "CREDENTIAL was sent too often"
        }
    }
}

extension FrameKind {
    /// The name that the specification uses.
    package var name: String {
        switch self {
        case .hello: "HELLO"
        case .request: "REQUEST"
        case .message: "MESSAGE"
        case .end: "END"
        case .status: "STATUS"
        case .cancel: "CANCEL"
        case .window: "WINDOW"
        case .ping: "PING"
        case .pong: "PONG"
        case .goAway: "GOAWAY"
        case .credential: "CREDENTIAL"
        }
    }
}
