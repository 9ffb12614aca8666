// A connection of the native protocol to a server in this process, with calls made up beforehand.

import Basics
import CAllocationCounter
import DocumentModel
import DocumentStore
import FirestoreService
import Foundation
import Server

struct Failure: Error, CustomStringConvertible {
    let description: String
}

/// A server on its own directory, and a socket to it. docs/protocol.md has the bytes.
final class Connection {
    static let database = "projects/p/databases/(default)"

    /// A call that is made again and again on streams of rising numbers.
    final class Call {
        fileprivate var frame: [UInt8]

        fileprivate init(frame: [UInt8]) { self.frame = frame }
    }

    private let directory: String
    private let server: DatabaseServer
    private let socket: Int32
    private var stream: UInt32 = 1

    private static let preface: [UInt8] = [0x89, 0x48, 0x45, 0x41, 0x52, 0x54, 0x48, 0x0A]

    init() throws {
        let name = "hearth-allocations-\(UUID().uuidString)"
        directory = FileManager.default.temporaryDirectory.appending(path: name).path
        let log = Log(level: .error) { FileHandle.standardError.write(Data($0.utf8)) }
        var configuration = DatabaseServerConfiguration(store: StoreConfiguration(directory: directory), log: log)
        configuration.transport.port = 0
        configuration.summaryMilliseconds = 0
        // Profilers leave little address space.
        configuration.store.engine.runBytesMax = 1 << 32
        configuration.store.engine.memtableBytesMax = 16 << 20
        server = try DatabaseServer.start(configuration)
        socket = loopback_connect(server.port)
        guard socket >= 0 else { throw Failure(description: "cannot connect") }
        // HELLO, version 1, without settings; answered with HELLO.
        let hello = Self.preface + Self.frame(kind: 1, code: 1, stream: 0, payload: [])
        guard exchange(socket, hello, Int64(hello.count)) == 1 << 8 else { throw Failure(description: "no HELLO") }
    }

    deinit {
        close(socket)
        server.stop()
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Prepares a unary call and makes it once.
    func call(method: UInt16, _ message: [UInt8]) throws -> Call {
        let call = Call(frame: Self.frame(kind: 2, flags: 1, code: method, stream: 0, payload: message))
        try self.repeat(call)
        return call
    }

    /// Makes a call again; its status must be OK.
    func `repeat`(_ call: Call) throws {
        for byte in 0..<4 { call.frame[8 + byte] = UInt8(truncatingIfNeeded: stream >> (8 * UInt32(byte))) }
        stream += 2
        let answer = exchange(socket, call.frame, Int64(call.frame.count))
        // MESSAGE with END_STREAM: one message, status OK.
        guard answer == 3 << 8 | 1 else { throw Failure(description: "the status of a call was \(answer)") }
    }

    private static func frame(
        kind: UInt8, flags: UInt8 = 0, code: UInt16, stream: UInt32, payload: [UInt8]
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        for byte in 0..<4 { bytes.append(UInt8(truncatingIfNeeded: payload.count >> (8 * byte))) }
        bytes += [kind, flags, UInt8(truncatingIfNeeded: code), UInt8(code >> 8)]
        for byte in 0..<4 { bytes.append(UInt8(truncatingIfNeeded: stream >> (8 * UInt32(byte)))) }
        return bytes + payload
    }
}
