// Network namespaces, so that links between servers can be cut. Tools/cluster makes them, and starts the tests in one.
//
//     client ──┐
//     s0, s1, s2 ──┼── bridge of the namespace hub
//     d0, d1 ──┘

import Foundation
import TestSupport

/// The namespaces of a run.
struct ClusterNetwork: Sendable {
    /// What their names begin with.
    private let prefix: String

    private static let ip = "/usr/sbin/ip"
    private static let names = ["client", "s0", "s1", "s2", "d0", "d1"]

    /// Nil if the tests run on the loopback interface.
    static var ofEnvironment: ClusterNetwork? {
        ProcessInfo.processInfo.environment["HEARTH_CLUSTER_NETWORK"].map(ClusterNetwork.init)
    }

    private init(_ prefix: String) { self.prefix = prefix }

    /// One of the namespaces. Their addresses are numbered as Tools/cluster does it.
    func host(_ name: String) -> TestHost {
        let number = (Self.names.firstIndex(of: name) ?? 0) + 1
        return TestHost(address: "10.213.7.\(number)", launcher: [Self.ip, "netns", "exec", "\(prefix)-\(name)"])
    }

    private func run(in name: String, _ arguments: [String]) throws {
        let outcome = try HearthBinary.run(
            ["netns", "exec", "\(prefix)-\(name)", Self.ip] + arguments, executable: Self.ip)
        guard outcome.status == 0 else {
            throw PostgreSQLServer.StartError(description: "ip \(arguments): \(outcome.errors)")
        }
    }

    /// Whether nothing reaches a namespace, and nothing leaves it.
    func cut(_ name: String, _ isCut: Bool) throws { try run(in: "hub", ["link", "set", name, isCut ? "down" : "up"]) }

    /// Whether nothing goes from one namespace to another, in either direction.
    func cut(_ one: String, _ other: String, _ isCut: Bool) throws {
        for (here, there) in [(one, other), (other, one)] {
            try run(in: here, ["route", isCut ? "add" : "del", "blackhole", "\(host(there).address)/32"])
        }
    }
}
