// Flow control of one direction of one stream.

/// How many message bytes may still be sent before the receiver has to permit more.
///
/// A message may be sent whole as soon as the window is above zero, and may take it below zero by less than one
/// message: so no message is too large for a window, and what a receiver must hold stays bounded by window + message
/// limit.
struct FlowWindow: Equatable, Sendable {
    /// No window may grow beyond this.
    static let max: UInt32 = 0x7FFF_FFFF

    private(set) var available: Int

    init(_ available: UInt32) { self.available = Int(available) }

    var isOpen: Bool { available > 0 }

    mutating func consume(_ bytes: Int) { available -= bytes }

    /// Adds what the receiver permits; false when that is more than the protocol allows.
    mutating func permit(_ bytes: UInt32) -> Bool {
        available += Int(bytes)
        return available <= Int(Self.max)
    }
}
