// A relay between a client of HTTP/2 and a server of this machine, which can cancel calls as a server or a proxy does.

import Basics
import Glibc
import Synchronization
import TestSupport

/// Passes bytes on in both directions until the process ends. Thread-safe.
final class CancellingRelay: Sendable {
    /// Where clients connect to.
    let port: Int
    private let connections = Mutex<[Connection]>([])

    /// - Parameter server: the port of the server.
    init(to server: Int) throws {
        let (listener, port) = try LoopbackSocket.listen()
        self.port = port
        _ = try SystemThread.start("relay") { [self] in
            while case let client = accept(listener, nil, nil), client >= 0 {
                guard let socket = LoopbackSocket.connect(port: UInt16(server)) else {
                    close(client)
                    continue
                }
                let connection = Connection(client: client, server: socket)
                connections.withLock { $0.append(connection) }
                _ = try? SystemThread.start("to server") { connection.carryRequests() }
                _ = try? SystemThread.start("to client") { connection.carryAnswers() }
            }
        }
    }

    /// Cancels every call that the server is answering: a frame RST_STREAM with CANCEL (RFC 9113, section 7).
    ///
    /// - Returns: how many there were.
    func cancelCalls() -> Int { connections.withLock { $0.map { $0.cancelCalls() }.reduce(0, +) } }

    private final class Connection: Sendable {
        let client: Int32
        let server: Int32
        /// Streams whose answer has begun and has not ended. Locked while a frame is sent to the client.
        private let answered = Mutex<Set<[UInt8]>>([])

        init(client: Int32, server: Int32) { (self.client, self.server) = (client, server) }

        func carryRequests() {
            while let bytes = Self.receive(client, atLeast: 1, atMost: 65_536) {
                _ = LoopbackSocket.send(bytes, to: server)
            }
            shutdown(server, Int32(SHUT_WR))
        }

        func carryAnswers() {
            while let head = Self.receive(server, atLeast: 9, atMost: 9) {
                let count = head[..<3].reduce(0) { $0 << 8 | Int($1) }
                let payload = count == 0 ? [] : Self.receive(server, atLeast: count, atMost: count)
                guard let payload else { break }
                answered.withLock { streams in
                    let (kind, stream) = (head[3], Array(head[5...]))
                    if kind == Self.headers { streams.insert(stream) }
                    if kind == Self.reset || (kind <= Self.headers && head[4] & Self.endStream != 0) {
                        streams.remove(stream)
                    }
                    _ = LoopbackSocket.send(head + payload, to: client)
                }
            }
            shutdown(client, Int32(SHUT_WR))
        }

        func cancelCalls() -> Int {
            answered.withLock { streams in
                defer { streams = [] }
                for stream in streams {
                    _ = LoopbackSocket.send([0, 0, 4, Self.reset, 0] + stream + [0, 0, 0, Self.cancel], to: client)
                }
                return streams.count
            }
        }

        private static let headers: UInt8 = 1
        private static let reset: UInt8 = 3
        private static let endStream: UInt8 = 1
        private static let cancel: UInt8 = 8

        /// Nil at the end of the connection.
        private static func receive(_ descriptor: Int32, atLeast least: Int, atMost most: Int) -> [UInt8]? {
            var bytes = [UInt8](repeating: 0, count: most)
            var count = 0
            while count < least {
                let received = bytes.withUnsafeMutableBytes {
                    recv(descriptor, $0.baseAddress! + count, most - count, 0)
                }
                if received <= 0 { return nil }
                count += received
            }
            return Array(bytes[..<count])
        }
    }
}
