// A real server under load: how tests start it, talk to it and watch its memory.

import DocumentModel
import FirestoreMessages
import Foundation
import HearthClient
import TestSupport
import Testing

/// A server process on its own directory.
final class LoadFixture: Sendable {
    static let database = try! DatabaseName(project: "load")
    /// 1, or 20 in a soak.
    static let scale = ProcessInfo.processInfo.environment["HEARTH_SOAK"] == nil ? 1 : 20

    let directory = TemporaryDirectory("hearth-load", on: .disk)
    let server: ServerProcess

    init(_ arguments: [String] = []) throws {
        server = try ServerProcess(data: directory.path(of: "data"), arguments: arguments)
    }

    func client() throws -> HearthClient {
        try HearthClient(HearthClient.Configuration(host: server.host, port: UInt16(server.port)))
    }

    /// Megabytes of the server's own memory, without mapped files.
    func privateMegabytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(server.process.identifier)/status", encoding: .utf8)
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("RssAnon:") }),
            let kilobytes = line.split(whereSeparator: { !$0.isNumber }).first.flatMap({ Int($0) })
        else { throw LoadFailure("no RssAnon in /proc") }
        return kilobytes / 1024
    }

    /// The value of a figure without labels on the page of metrics.
    func metric(_ name: String) throws -> Int {
        let page = HTTPTestClient(port: server.port).request("GET", "/metrics")?.body ?? ""
        guard let line = page.split(separator: "\n").first(where: { $0.hasPrefix(name + " ") }),
            let value = Double(line.dropFirst(name.count + 1))
        else { throw LoadFailure("no \(name) in /metrics") }
        return Int(value)
    }

    /// Stops the server in order and verifies what it left.
    func expectSoundEnd() throws {
        expectEqual(server.stop(), 0, "\(server.process.errors.suffix(2000))")
        let outcome = try HearthBinary.run(["check", "--data", directory.path(of: "data")])
        expectEqual(outcome.status, 0, "\(outcome.output)\(outcome.errors)")
    }

    static func name(_ path: String) -> String { "\(database.documentsRoot)/\(path)" }
}

struct LoadFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// A plain blocking socket that writes what a client library never would.
final class RawConnection {
    private let descriptor: Int32

    init(port: Int) throws {
        guard let descriptor = LoopbackSocket.connect(port: UInt16(port)) else {
            throw LoadFailure("cannot connect: \(String(cString: strerror(errno)))")
        }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Sends all bytes; false when the server has closed the connection or does not read for ten seconds.
    func send(_ bytes: [UInt8]) -> Bool {
        var timeout = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        return LoopbackSocket.send(bytes, to: descriptor)
    }

    /// Reads until the server closes the connection or nothing comes for ten seconds; nil in the latter case.
    func readToEnd() -> [UInt8]? {
        var timeout = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count == 0 || (count < 0 && errno == ECONNRESET) { return all }
            if count < 0 { return nil }
            all.append(contentsOf: buffer[..<count])
        }
    }

    /// Waits until something has come, without taking it; false when nothing comes for ten seconds.
    func waitForBytes() -> Bool {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&waiting, 1, 10_000) == 1 && waiting.revents & Int16(POLLIN) != 0
    }

    /// Bytes that have come and were not taken.
    var waitingBytes: Int {
        var count: Int32 = 0
        return ioctl(descriptor, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
    }

    /// A frame of the native protocol; docs/protocol.md, "Frames".
    static func frame(
        kind: UInt8, flags: UInt8 = 0, code: UInt16 = 0, stream: UInt32 = 0, length: UInt32? = nil,
        payload: [UInt8] = []
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        for shift in stride(from: 0, to: 32, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: (length ?? UInt32(payload.count)) >> shift))
        }
        bytes += [kind, flags, UInt8(truncatingIfNeeded: code), UInt8(code >> 8)]
        for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: stream >> shift)) }
        return bytes + payload
    }

    /// The eight bytes that open a connection; docs/protocol.md, "Opening a connection".
    static let preface: [UInt8] = [0x89, 0x48, 0x45, 0x41, 0x52, 0x54, 0x48, 0x0A]
    static let hello = preface + frame(kind: 1, code: 1)
}
