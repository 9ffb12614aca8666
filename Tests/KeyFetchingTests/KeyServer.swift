// A server of keys for tests, which answers each request as the test says.

import Basics
import Foundation
import TLS

/// Serves HTTP/1.1, over TLS or in plain text, on a port of 127.0.0.1. Each connection has a thread and one request.
final class KeyServer: Sendable {
    struct Reply: Sendable {
        var status = 200
        /// Such as `Cache-Control: max-age=600`.
        var fields: [String] = []
        var body: [UInt8] = []
        /// Bytes that the head promises beyond the body; then the server is silent until the client leaves.
        var missingBytes = 0
        /// Whether the head has the length of the body; if not, the end of the connection ends it.
        var hasLength = true
    }

    let port: UInt16
    private let listener: Int32
    private let context: TLSContext?
    /// nil: the server is silent until the client leaves.
    private let reply: @Sendable (_ path: String) -> Reply?

    /// - Parameter context: nil for plain text.
    init(_ context: TLSContext?, _ reply: @escaping @Sendable (_ path: String) -> Reply?) {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listener
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                precondition(bind(descriptor, $0, size) == 0 && listen(descriptor, 16) == 0)
                precondition(getsockname(descriptor, $0, &size) == 0)
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        self.context = context
        self.reply = reply
    }

    /// Accepts connections until ``stop()``.
    func start() {
        Thread.detachNewThread { [self] in
            while true {
                let descriptor = accept(listener, nil, nil)
                if descriptor < 0 { return }
                Thread.detachNewThread { [self] in
                    serve(descriptor)
                    close(descriptor)
                }
            }
        }
    }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    private func serve(_ descriptor: Int32) {
        guard let peer = Peer(descriptor, context), let path = peer.requestPath() else { return }
        guard let reply = reply(path) else { return peer.waitForEnd() }
        var head = ["HTTP/1.1 \(reply.status) Test", "Connection: close"] + reply.fields
        if reply.hasLength { head.append("Content-Length: \(reply.body.count + reply.missingBytes)") }
        peer.send(Array("\(head.joined(separator: "\r\n"))\r\n\r\n".utf8) + reply.body)
        if reply.missingBytes > 0 { return peer.waitForEnd() }
        peer.end()
    }
}

/// A blocking socket, with or without TLS.
private final class Peer {
    private let descriptor: Int32
    private let session: TLSSession?

    init?(_ descriptor: Int32, _ context: TLSContext?) {
        self.descriptor = descriptor
        do {
            session = try context.map { try TLSSession(server: $0) }
        } catch {
            return nil
        }
    }

    /// The path in the first line of a request; nil if the client leaves before its head is complete.
    func requestPath() -> String? {
        var text = ""
        while !text.contains("\r\n\r\n") {
            guard let received = receive() else { return nil }
            text += String(decoding: received, as: UTF8.self)
        }
        let words = text.prefix { $0 != "\r\n" }.split(separator: " ")
        return words.count > 1 ? String(words[1]) : nil
    }

    /// - Returns: nil after the end of the connection and after a failure.
    private func receive() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return nil }
        guard let session else { return Array(buffer.prefix(count)) }
        var plaintext = ByteBuffer()
        defer { flush() }
        do throws(TLSError) {
            try session.receive(buffer.byteSpan.extracting(first: count), into: &plaintext)
        } catch {
            return nil
        }
        return plaintext.copyBytes()
    }

    func waitForEnd() {
        while receive() != nil {}
    }

    func send(_ bytes: [UInt8]) {
        guard let session else { return write(bytes) }
        for start in stride(from: 0, to: bytes.count, by: 16_384) {
            let part = Array(bytes[start..<min(start + 16_384, bytes.count)])
            guard (try? session.send(part.byteSpan)) == part.count else { return }
            flush()
        }
    }

    func end() {
        session?.close()
        flush()
        shutdown(descriptor, Int32(SHUT_WR))
        waitForEnd()
    }

    private func flush() {
        var output = ByteBuffer()
        session?.takeOutput(into: &output)
        write(output.copyBytes())
    }

    private func write(_ bytes: [UInt8]) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return }
            sent += count
        }
    }
}
