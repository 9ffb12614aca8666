// The place of a socket for OpenSSL: what a session has received, and what is to be sent.

internal import Basics
internal import COpenSSLTLS

/// Ciphertext on its way between a session and its caller. Received bytes are lent for one call and read in place;
/// bytes to send are written once, into a buffer of this object. Confined to its session.
@safe
final class TLSTransfer {
    /// Received bytes that OpenSSL has not read; lent by the caller of the session for its call, else empty.
    private var input = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var output = ByteBuffer(capacity: 0)
    private let outputBytesMax: Int
    /// Bytes that the handshake may still take; nil after it.
    private var handshakeBytes: Int?
    /// Which limit was exceeded.
    private(set) var exceeded: String?

    init(outputBytesMax: Int, handshakeBytesMax: Int) {
        self.outputBytesMax = outputBytesMax
        handshakeBytes = handshakeBytesMax
    }

    /// Gives the handshake no further limit.
    func endHandshake() { handshakeBytes = nil }

    /// Lends `ciphertext` to OpenSSL during `body`. What is left then is dropped.
    func lend(_ ciphertext: RawSpan, _ body: () throws(TLSError) -> Void) throws(TLSError) {
        defer { unsafe input = UnsafeRawBufferPointer(start: nil, count: 0) }
        // The bytes are used during `body` alone.
        try unsafe ciphertext.withUnsafeBytes { bytes throws(TLSError) in
            unsafe input = bytes
            try body()
        }
    }

    /// Moves the bytes to send to the end of `target`.
    func takeOutput(into target: inout ByteBuffer) {
        target.append(output.bytes)
        // An idle session keeps no memory for its next record.
        output.reset(keeping: 1024)
    }

    // MARK: Calls of OpenSSL

    private func read(into target: UnsafeMutableRawBufferPointer, _ bio: OpaquePointer) -> Int {
        let count = unsafe min(target.count, input.count)
        if count == 0 {
            unsafe BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
            return 0
        }
        if let left = handshakeBytes {
            guard count <= left else {
                exceeded = "the handshake has too many bytes"
                return 0
            }
            handshakeBytes = left - count
        }
        unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<count]))
        unsafe input = UnsafeRawBufferPointer(rebasing: input[count...])
        return count
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count <= outputBytesMax - output.count else {
            exceeded = "too many bytes wait to be sent"
            return false
        }
        unsafe output.append(RawSpan(_unsafeBytes: bytes))
        return true
    }

    /// A BIO for the session that owns this object; the session must not outlive it.
    func makeBIO() -> OpaquePointer? {
        guard let bio = unsafe BIO_new(Self.method) else { return nil }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    private static func of(_ bio: OpaquePointer) -> TLSTransfer? {
        guard let reference = unsafe BIO_get_data(bio) else { return nil }
        return unsafe Unmanaged<TLSTransfer>.fromOpaque(reference).takeUnretainedValue()
    }

    /// Made once and never changed; OpenSSL only reads it.
    private nonisolated(unsafe) static let method: OpaquePointer? = {
        guard let method = unsafe BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "hearth") else { return nil }
        unsafe BIO_meth_set_read_ex(method) { bio, target, count, done in
            guard let bio = unsafe bio, let transfer = unsafe TLSTransfer.of(bio) else { return 0 }
            unsafe BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
            let read = unsafe transfer.read(into: UnsafeMutableRawBufferPointer(start: target, count: count), bio)
            unsafe done?.pointee = read
            return read > 0 ? 1 : 0
        }
        unsafe BIO_meth_set_write_ex(method) { bio, bytes, count, done in
            guard let bio = unsafe bio, let transfer = unsafe TLSTransfer.of(bio) else { return 0 }
            unsafe BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
            guard unsafe transfer.write(UnsafeRawBufferPointer(start: bytes, count: count)) else { return 0 }
            unsafe done?.pointee = count
            return 1
        }
        unsafe BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
        return unsafe method
    }()
}
