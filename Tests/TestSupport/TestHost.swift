/// Where a test starts a program: this machine, or a network namespace of it with another address.
package struct TestHost: Sendable {
    /// The address that servers there listen on.
    package let address: String
    /// What starts a program there; empty for this machine.
    package let launcher: [String]

    package init(address: String, launcher: [String]) {
        self.address = address
        self.launcher = launcher
    }

    /// This machine, over its loopback interface.
    package static let local = TestHost(address: "127.0.0.1", launcher: [])
}
