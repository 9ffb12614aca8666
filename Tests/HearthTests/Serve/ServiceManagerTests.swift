// What a service manager learns from the server over the socket of NOTIFY_SOCKET.

import Foundation
import TestSupport
import Testing

@testable import hearth

/// A service manager's socket: keeps the datagrams.
private final class FakeManager {
    private let descriptor: Int32

    /// - Parameter path: of a new socket; `@` begins a name without a file.
    init(_ path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(path.utf8)
        if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 } else { bytes.append(0) }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(2 + bytes.count)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        try #require(result == 0, "bind: \(String(cString: strerror(errno)))")
        var patience = timeval(tv_sec: waitSecondsMax, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    /// The next datagram; empty if none has come for a long time.
    func next() -> String {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
    }

    /// The next datagram that does not only say that the server works.
    func nextState() -> String {
        var state = next()
        while state == "WATCHDOG=1" { state = next() }
        return state
    }
}

@Suite(.timeLimit(.minutes(20))) struct ServiceManagerTests {
    private static func manager(_ environment: [String: String]) -> ServiceManager? {
        ServiceManager(environment: { environment[$0] }, process: 7)
    }

    @Test func `Without a socket that can be used there is no manager`() {
        expectNil(Self.manager([:]))
        for path in ["", "/", "relative", "@", "vsock:2:1", "/" + String(repeating: "x", count: 107)] {
            expectNil(Self.manager(["NOTIFY_SOCKET": path]), "\(path)")
        }
        expectEqual(Self.manager(["NOTIFY_SOCKET": "/run/a"])?.socketPath, "/run/a")
        expect(Self.manager(["NOTIFY_SOCKET": "/" + String(repeating: "x", count: 106)]) != nil)
    }

    @Test(
        arguments: [
            (["WATCHDOG_USEC": "30000000"], 30_000), (["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"], 30_000),
            (["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"], nil), ([:], nil), (["WATCHDOG_USEC": "0"], nil),
            (["WATCHDOG_USEC": "-5000"], nil), (["WATCHDOG_USEC": "many"], nil),
            (["WATCHDOG_USEC": "99999999999999999999"], nil), (["WATCHDOG_USEC": "1999"], 1),
        ] as [([String: String], Int?)])
    func `The time of the watchdog is that of this process`(environment: [String: String], milliseconds: Int?) throws {
        var environment = environment
        environment["NOTIFY_SOCKET"] = "@a"
        try expectEqual(#require(Self.manager(environment)).watchdogMilliseconds, milliseconds)
    }

    @Test func `States are lines of variables`() throws {
        let directory = TemporaryDirectory("notify")
        let socket = directory.path(of: "s")
        let receiver = try FakeManager(socket)
        let manager = try #require(Self.manager(["NOTIFY_SOCKET": socket]))
        for (state, text) in [
            (.ready("serving"), "READY=1\nSTATUS=serving"), (.alive, "WATCHDOG=1"), (.stopping, "STOPPING=1"),
            (.reloading(since: 12), "RELOADING=1\nMONOTONIC_USEC=12"),
        ] as [(ServiceManager.State, String)] {
            expect(manager.notify(state))
            expectEqual(receiver.next(), text)
        }
        expectEqual(Self.manager(["NOTIFY_SOCKET": directory.path(of: "none")])?.notify(.alive), false)
    }

    @Test(arguments: [true, false])
    func `The server says when it is ready, works, reloads and stops`(isAbstract: Bool) throws {
        let directory = TemporaryDirectory("notify")
        let socket = isAbstract ? "@hearth-test-\(UUID().uuidString)" : directory.path(of: "s")
        let manager = try FakeManager(socket)
        let server = try ServerProcess(
            data: directory.path(of: "data"),
            environment: ["NOTIFY_SOCKET": socket, "WATCHDOG_USEC": "20000"])
        expectEqual(manager.next(), "READY=1\nSTATUS=serving on 127.0.0.1:\(server.port)")
        for _ in 0..<10 { expectEqual(manager.next(), "WATCHDOG=1") }
        server.process.signal(SIGHUP)
        expect(manager.nextState().hasPrefix("RELOADING=1\nMONOTONIC_USEC="))
        expect(manager.nextState().hasPrefix("READY=1\n"))
        expectEqual(manager.next(), "WATCHDOG=1")
        server.process.signal(SIGTERM)
        expectEqual(manager.nextState(), "STOPPING=1")
        server.process.waitForEnd()
        expectEqual(server.process.status, 0)
    }
}
