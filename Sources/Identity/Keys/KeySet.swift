/// Bounds of keys that come from files and servers.
package enum KeyLimits {
    /// Bytes of one file or response.
    package static let fileBytesMax = 1 << 20
    /// Keys of one issuer.
    package static let keysMax = 256
    /// Bytes of a key's identifier.
    package static let identifierBytesMax = 512
}

/// The public keys of an issuer at one moment, by their identifiers (`kid`). Immutable; compared by identity.
package final class KeySet: Sendable {
    /// By the bytes of the identifier: equal texts of other bytes are other keys.
    private let keys: [[UInt8]: VerificationKey]

    init(_ keys: [[UInt8]: VerificationKey]) { self.keys = keys }

    package static let empty = KeySet([:])

    package var count: Int { keys.count }

    /// The key of a token.
    ///
    /// - Parameter identifier: the token's `kid`; nil if it has none, which only a set of one key permits.
    package func key(_ identifier: String?) -> VerificationKey? {
        guard let identifier else { return keys.count == 1 ? keys.first?.value : nil }
        return keys[Array(identifier.utf8)]
    }
}

/// Keys that are being gathered from one or more texts.
struct KeySetBuilder {
    private(set) var keys: [[UInt8]: VerificationKey] = [:]

    /// - Throws: `KeyFault` if there are too many keys, or another one has the identifier.
    mutating func add(_ key: VerificationKey, _ identifier: String) throws(KeyFault) {
        guard (1...KeyLimits.identifierBytesMax).contains(identifier.utf8.count) else {
            throw KeyFault("a key's identifier is empty or too long")
        }
        guard keys.count < KeyLimits.keysMax else { throw KeyFault("there are more than \(KeyLimits.keysMax) keys") }
        guard keys.updateValue(key, forKey: Array(identifier.utf8)) == nil else {
            throw KeyFault("two keys have the same identifier")
        }
    }

    /// - Throws: `KeyFault` if there is none.
    func finished() throws(KeyFault) -> KeySet {
        if keys.isEmpty { throw KeyFault("there is no key that verifies signatures") }
        return KeySet(keys)
    }
}
