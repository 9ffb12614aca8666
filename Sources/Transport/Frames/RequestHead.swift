// What a REQUEST frame says about a call besides its message: procedure, deadline, request id.

package import Basics

/// Names one attempt-independent request of a client, so that a retry after a lost answer is applied once.
package struct RequestID: Hashable, Sendable {
    /// Bytes of an encoded request id.
    package static let byteCount = 32

    /// The client session: 16 random bytes, in wire order high word first.
    package var sessionHigh: UInt64
    package var sessionLow: UInt64
    /// Position of the request in its session.
    package var sequence: UInt64
    /// Every sequence below this one has been answered to the client; the server may forget their results.
    package var oldestPending: UInt64

    package init(sessionHigh: UInt64, sessionLow: UInt64, sequence: UInt64, oldestPending: UInt64) {
        self.sessionHigh = sessionHigh
        self.sessionLow = sessionLow
        self.sequence = sequence
        self.oldestPending = oldestPending
    }

    /// Reads the 32 bytes at `offset`; the caller has checked that they are there.
    ///
    /// The session's 16 bytes are opaque and so kept in wire order; the two counters are little-endian.
    init(_ bytes: RawSpan, at offset: Int) {
        sessionHigh = UInt64(bigEndian: bytes.loadInteger(at: offset))
        sessionLow = UInt64(bigEndian: bytes.loadInteger(at: offset + 8))
        sequence = UInt64(littleEndian: bytes.loadInteger(at: offset + 16))
        oldestPending = UInt64(littleEndian: bytes.loadInteger(at: offset + 24))
    }

    func append(to output: inout ByteBuffer) {
        output.append(bigEndian: sessionHigh)
        output.append(bigEndian: sessionLow)
        output.append(littleEndian: sequence)
        output.append(littleEndian: oldestPending)
    }
}

/// All that the server learns of a call before its first message.
package struct RequestHead: Equatable, Sendable {
    package var rpc: RPC
    /// Time that the client gives the call from its arrival, in milliseconds; nil = no limit.
    package var deadlineMilliseconds: UInt32?
    package var requestID: RequestID?
    /// Whether the first message is the client's last.
    package var isComplete: Bool

    package init(rpc: RPC, deadlineMilliseconds: UInt32? = nil, requestID: RequestID? = nil, isComplete: Bool = true) {
        self.rpc = rpc
        self.deadlineMilliseconds = deadlineMilliseconds
        self.requestID = requestID
        self.isComplete = isComplete
    }

    /// The placeholder before the first request.
    static let none = RequestHead(rpc: RPC(number: 0, shape: .unary))

    /// Bytes of the header extensions that a REQUEST frame with these flags carries before its message.
    static func extensionBytes(of flags: FrameFlags) -> Int {
        (flags.contains(.deadline) ? 4 : 0) + (flags.contains(.requestID) ? RequestID.byteCount : 0)
    }
}

extension RawSpan {
    /// The integer stored at `offset` as it stands; the caller has checked the range.
    func loadInteger<Integer: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Integer {
        precondition(
            offset >= 0 && byteCount - offset >= MemoryLayout<Integer>.size, "an integer is read within its bytes")
        return unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: Integer.self)
    }
}
