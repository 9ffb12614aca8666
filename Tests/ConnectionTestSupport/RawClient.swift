// A client without manners: sends any bytes over a blocking socket and reads what comes back.

import Basics
import EventLoops
import Glibc
package import NativeProtocol
import TestSupport
import Testing

package final class RawClient {
    private let descriptor: Int32

    package init(port: UInt16) {
        guard let descriptor = LoopbackSocket.connect(port: port) else {
            preconditionFailure("cannot connect: \(errno)")
        }
        self.descriptor = descriptor
    }

    /// - Parameter path: of a Unix socket.
    package init(path: String) throws {
        descriptor = try LocalSocket.connect(to: path)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    /// Makes the kernel keep few bytes for us, so that a server notices soon that we do not read.
    package func shrinkReceiveBuffer() {
        var size: Int32 = 4_096
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Sends bytes to a server that may close the connection first: a test then looks at what the server has sent.
    package func send(_ bytes: [UInt8]) { _ = sendAll(bytes) }

    /// Sends bytes; false if the server closes the connection first.
    package func sendAll(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    package func send(_ frames: TestFrame...) { send(frames) }
    package func send(_ frames: [TestFrame]) { send(frames.flatMap(\.bytes)) }

    /// Whether bytes, or the end, wait to be received.
    package var hasInput: Bool {
        var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&wanted, 1, 0) == 1
    }

    package func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// At most `count` bytes; empty at the end or when the connection was reset.
    package func receive(_ count: Int = 65_536) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: count)
        let got = recv(descriptor, &buffer, count, 0)
        if got < 0, errno == EAGAIN { Issue.record("the server was silent for \(waitSecondsMax) seconds") }
        return got > 0 ? Array(buffer[..<got]) : []
    }

    /// Everything until the server closes.
    package func receiveAll() -> [UInt8] {
        var all: [UInt8] = []
        while true {
            let part = receive()
            if part.isEmpty { return all }
            all += part
        }
    }

    /// The frames that the server sends until it closes.
    package func receiveFrames() -> [TestFrame] { TestFrame.all(in: receiveAll()) }
}

extension TestFrame {
    /// The whole frames that `bytes` begin with.
    package static func all(in bytes: [UInt8]) -> [TestFrame] {
        var frames: [TestFrame] = []
        var offset = 0
        while case .frame(let header) = FrameDecoder.scan(bytes.span.bytes, at: offset, payloadBytesMax: .max - 12) {
            let start = offset + FrameHeader.byteCount
            offset = start + Int(header.length)
            var frame = TestFrame(
                .hello, header.flags, code: header.code, stream: header.stream, Array(bytes[start..<offset]))
            frame.kind = header.kind
            frames.append(frame)
        }
        return frames
    }

    package func isKind(_ kind: FrameKind) -> Bool { self.kind == kind.rawValue }

    package var text: String { String(decoding: payload, as: UTF8.self) }
}
