// The shape that each kind of frame must have, for both sides and in every state of the connection.

enum FrameRules {
    /// What of a frame's kind is wrong with its header; nil when nothing is.
    static func violation(of header: FrameHeader, _ kind: FrameKind) -> ProtocolViolation? {
        let strange = header.flags.subtracting(allowedFlags(kind))
        guard strange.isEmpty else { return .unknownFlags(kind, strange.rawValue) }
        if let length = exactLength(kind), header.length != length { return .wrongLength(kind, header.length) }
        if kind == .credential, header.length > Credential.bytesMax { return .wrongLength(kind, header.length) }
        switch kind {
        case .hello, .ping, .pong, .credential: return header.stream == 0 ? nil : .noStreamExpected(kind)
        case .goAway: return nil
        case .request, .message, .end, .status, .cancel, .window:
            return header.stream == 0 ? .streamExpected(kind) : nil
        }
    }

    /// Kinds from 128 on are for extensions that a receiver may ignore.
    static func mayBeIgnored(_ kind: UInt8) -> Bool { kind >= 128 }

    private static func allowedFlags(_ kind: FrameKind) -> FrameFlags {
        switch kind {
        case .request: .ofRequest
        case .message: [.endStream, .more]
        default: []
        }
    }

    private static func exactLength(_ kind: FrameKind) -> UInt32? {
        switch kind {
        case .end, .cancel: 0
        case .window: 4
        case .ping, .pong: 8
        default: nil
        }
    }
}
