/// The bytes that open a connection.
package enum Preface {
    /// `0x89 "HEARTH" 0x0A`: no text, no HTTP and no TLS begins so; damaged by anything that strips bits or rewrites
    /// line ends.
    package static let hearth: [UInt8] = [0x89, 0x48, 0x45, 0x41, 0x52, 0x54, 0x48, 0x0A]
}
