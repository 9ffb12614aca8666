// A small blocking HTTP/1.1 client: sends any bytes, reads replies one by one.

import Glibc

/// One connection.
package final class HTTPTestClient {
    /// What a server replied.
    package struct Reply: Equatable {
        package var status = 0
        /// Names in lower case.
        package var headers: [String: String] = [:]
        package var body = ""
        /// The chunks of the body, if it came in such.
        package var chunks: [String] = []
    }

    private let descriptor: Int32
    private var received: [UInt8] = []

    package init(port: Int) {
        guard let descriptor = LoopbackSocket.connect(port: UInt16(port)) else {
            preconditionFailure("cannot connect: \(errno)")
        }
        self.descriptor = descriptor
    }

    /// Nil where nobody listens, as while a server starts again, or where nobody answers within so many seconds.
    package init?(
        ifListening port: Int, address: String = TestHost.local.address, patienceSeconds: Int = waitSecondsMax
    ) {
        let connected = LoopbackSocket.connect(port: UInt16(port), address: address, patienceSeconds: patienceSeconds)
        guard let descriptor = connected else { return nil }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Sends the text as it stands.
    package func send(_ text: String) {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            sent += count
        }
    }

    /// Sends a request and reads its reply.
    package func request(_ method: String, _ target: String, body: String? = nil, headers: [String] = []) -> Reply? {
        var text = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\n"
        for header in headers { text += header + "\r\n" }
        if let body { text += "Content-Length: \(body.utf8.count)\r\n\r\n\(body)" } else { text += "\r\n" }
        send(text)
        return reply(hasBody: method != "HEAD")
    }

    /// The status and the headers of the next reply; nil when the server closes or is silent. The body is still to be
    /// read.
    package func head() -> Reply? {
        guard let head = readLine() else { return nil }
        var reply = Reply(status: head.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0)
        while let line = readLine(), !line.isEmpty {
            let parts = line.split(separator: ":", maxSplits: 1)
            reply.headers[parts[0].lowercased()] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
        }
        return reply
    }

    /// The next chunk of a body that comes in chunks; empty for the last one, nil when the server closes or is silent.
    package func chunk() -> String? {
        guard let line = readLine(), let size = Int(line, radix: 16) else { return nil }
        let chunk = read(size)
        _ = readLine()
        return chunk
    }

    /// The next reply; nil when the server closes or is silent.
    package func reply(hasBody: Bool = true) -> Reply? {
        guard var reply = head() else { return nil }
        guard hasBody, reply.status != 204, reply.status >= 200 else { return reply }
        if reply.headers["transfer-encoding"] == "chunked" {
            while let chunk = chunk(), !chunk.isEmpty { reply.chunks.append(chunk) }
            reply.body = reply.chunks.joined()
        } else if let length = reply.headers["content-length"].flatMap({ Int($0) }) {
            reply.body = read(length)
        } else {
            while readMore() {}
            reply.body = String(decoding: received, as: UTF8.self)
            received = []
        }
        return reply
    }

    /// Whether the server has closed the connection; waits for it or for further bytes.
    package func isClosed() -> Bool { received.isEmpty && !readMore() }

    private func readLine() -> String? {
        while true {
            if let end = received.indices.first(where: { received[$0] == 0x0A }) {
                let line = String(decoding: received[..<end], as: UTF8.self)
                received.removeFirst(end + 1)
                return line.hasSuffix("\r") ? String(line.dropLast()) : line
            }
            guard readMore() else { return nil }
        }
    }

    private func read(_ count: Int) -> String {
        while received.count < count, readMore() {}
        let part = received.prefix(count)
        received.removeFirst(part.count)
        return String(decoding: part, as: UTF8.self)
    }

    private func readMore() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let got = recv(descriptor, &buffer, buffer.count, 0)
        guard got > 0 else { return false }
        received += buffer[..<got]
        return true
    }
}
