// Deadline, request id and the request before it, as they stand before the message of a REQUEST frame.

import Basics
import Calls

extension RequestID {
    /// Bytes of an encoded request id.
    package static let byteCount = 32

    /// Reads the 32 bytes at `offset`; the caller has checked that they are there.
    ///
    /// They begin with those of a ticket.
    init(_ bytes: RawSpan, at offset: Int) {
        self.init(
            CommitSequence.Ticket(bytes, at: offset),
            oldestPending: UInt64(littleEndian: bytes.loadInteger(at: offset + CommitSequence.Ticket.byteCount)))
    }

    func append(to output: inout ByteBuffer) {
        let session = CommitSequence.SessionID(high: sessionHigh, low: sessionLow)
        CommitSequence.Ticket(session: session, sequence: sequence).append(to: &output)
        output.append(littleEndian: oldestPending)
    }
}

extension CommitSequence.Ticket {
    /// Bytes of an encoded ticket.
    static let byteCount = 24

    /// Reads the 24 bytes at `offset`; the caller has checked that they are there.
    ///
    /// The session's 16 bytes are opaque and so kept in wire order; counters are little-endian.
    init(_ bytes: RawSpan, at offset: Int) {
        let session = CommitSequence.SessionID(
            high: UInt64(bigEndian: bytes.loadInteger(at: offset)),
            low: UInt64(bigEndian: bytes.loadInteger(at: offset + 8)))
        self.init(session: session, sequence: UInt64(littleEndian: bytes.loadInteger(at: offset + 16)))
    }

    func append(to output: inout ByteBuffer) {
        output.append(bigEndian: session.high)
        output.append(bigEndian: session.low)
        output.append(littleEndian: sequence)
    }
}

extension RequestHead {
    /// Bytes of the header extensions that a REQUEST frame with these flags carries before its message.
    static func extensionBytes(of flags: FrameFlags) -> Int {
        (flags.contains(.deadline) ? 4 : 0) + (flags.contains(.requestID) ? RequestID.byteCount : 0)
            + (flags.contains(.after) ? CommitSequence.Ticket.byteCount : 0)
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
