// Which data directory something belongs to.

internal import Basics

/// The identity of a data directory: 128 random bits, for as long as its history is one.
package struct StoreIdentity: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    package static func random() -> StoreIdentity {
        StoreIdentity(high: .random(in: .min ... .max), low: .random(in: .min ... .max))
    }

    /// Reads the 32 hexadecimal digits of the description; nil for anything else.
    package init?(_ text: String) {
        guard text.utf8.count == 32, let bytes = Hexadecimal.bytes(text) else { return nil }
        high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
    }
}

extension StoreIdentity: CustomStringConvertible {
    package var description: String { Hexadecimal.text(high) + Hexadecimal.text(low) }
}
