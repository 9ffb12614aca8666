// Keys that encrypt session tickets (RFC 8446, section 4.6.1): a client comes back without a full handshake, and the
// server keeps nothing for it.

internal import Basics
internal import COpenSSLTLS
internal import Synchronization

/// The ticket keys of one server. A key encrypts for an hour and decrypts for another hour; then its bytes are
/// overwritten. Kept over reloads of certificates, so that tickets survive these. Thread-safe.
///
/// Who can read a key can decrypt TLS 1.2 sessions that its tickets began, so a key lives short and is not stored.
package final class TicketKeys: Sendable {
    /// How long a key encrypts, in seconds.
    static let encryptsSeconds: UInt64 = 3600
    /// How long a key decrypts, from its making on, in seconds. Its last ticket so lives an hour.
    static let decryptsSeconds: UInt64 = 2 * encryptsSeconds
    /// How long a client may use a ticket, in seconds.
    static let ticketSeconds = 3600

    /// The newest first; never more than two, for older ones cannot decrypt.
    private let keys = Mutex<[TicketKey]>([])
    private let now: @Sendable () -> UInt64

    /// - Parameter now: elapsed time in seconds that never steps back, for example of the monotonic clock.
    package init(now: @escaping @Sendable () -> UInt64) { self.now = now }

    /// The key that encrypts now, made if the newest one is too old; nil if the system has no random bytes.
    func encrypting() -> TicketKey? {
        let now = now()
        return keys.withLock { keys in
            Self.removeExpired(&keys, now)
            if let newest = keys.first, now &- newest.madeAt < Self.encryptsSeconds { return newest }
            guard let made = TicketKey(madeAt: now) else { return nil }
            keys.insert(made, at: 0)
            return made
        }
    }

    /// The key of a ticket, and whether the client should get a ticket of a newer key.
    func decrypting(_ name: RawSpan) -> (key: TicketKey, isOld: Bool)? {
        let now = now()
        return keys.withLock { keys in
            Self.removeExpired(&keys, now)
            guard let key = keys.first(where: { $0.hasName(name) }) else { return nil }
            return (key, now &- key.madeAt >= Self.encryptsSeconds)
        }
    }

    private static func removeExpired(_ keys: inout [TicketKey], _ now: UInt64) {
        keys.removeAll { now &- $0.madeAt >= decryptsSeconds }
    }
}

/// One key: a public name of 16 bytes, 32 secret bytes for AES-256, 32 for HMAC-SHA-256.
@safe
final class TicketKey: @unchecked Sendable {
    // Sendable: never changed after `init`. Owner of the bytes: this object.
    static let nameBytes = 16
    private static let byteCount = nameBytes + 64

    let madeAt: UInt64
    private let bytes: UnsafeMutablePointer<UInt8>

    /// - Returns: nil if the system has no random bytes.
    init?(madeAt: UInt64) {
        self.madeAt = madeAt
        unsafe bytes = .allocate(capacity: Self.byteCount)
        unsafe bytes.initialize(repeating: 0, count: Self.byteCount)
        if unsafe RAND_bytes(bytes, Int32(Self.byteCount)) != 1 { return nil }
    }

    deinit {
        unsafe OPENSSL_cleanse(bytes, Self.byteCount)
        unsafe bytes.deallocate()
    }

    /// The 64 secret bytes; valid as long as this object.
    var secret: UnsafePointer<UInt8> { unsafe UnsafePointer(bytes + Self.nameBytes) }

    func hasName(_ name: RawSpan) -> Bool {
        unsafe RawSpan(_unsafeStart: bytes, byteCount: Self.nameBytes).equalsBytes(name)
    }

    func copyName(to target: UnsafeMutablePointer<UInt8>) {
        unsafe target.update(from: bytes, count: Self.nameBytes)
    }
}
