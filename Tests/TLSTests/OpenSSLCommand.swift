// The openssl command as the other side of a session, over a socket of this machine.

import Basics
import Foundation
import TLS
import TestSupport

/// A session on a blocking socket.
final class SocketSession {
    private let descriptor: Int32
    let session: TLSSession

    init(_ descriptor: Int32, _ session: TLSSession) {
        self.descriptor = descriptor
        self.session = session
    }

    deinit { close(descriptor) }

    /// Sends what waits to be sent.
    func flush() {
        var output = ByteBuffer()
        session.takeOutput(into: &output)
        _ = LoopbackSocket.send(output.copyBytes(), to: descriptor)
    }

    /// Receives once and sends what follows.
    /// - Returns: the plain text; nil after the end of the connection and after a failure.
    func receive() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return nil }
        var plaintext = ByteBuffer()
        defer { flush() }
        do throws(TLSError) {
            try session.receive(buffer.byteSpan.extracting(first: count), into: &plaintext)
        } catch {
            return nil
        }
        return plaintext.copyBytes()
    }
}

enum OpenSSLCommand {
    /// What came of a session.
    struct Outcome {
        var serverHandshake: TLSHandshake?
        var serverText = ""
        var failure: TLSError?
        var output = ""
        var errors = ""
    }

    /// Runs `openssl s_client` against a server of ours.
    ///
    /// - Parameters:
    ///   - says: its input. The session ends after the answer to a line.
    ///   - answer: nil if the command ends the session.
    ///   - readsCommands: whether lines such as `R` are commands.
    static func client(
        against context: TLSContext, _ arguments: [String], says: String, answer: String?, readsCommands: Bool = false
    ) throws -> Outcome {
        let (listener, port) = listen()
        defer { close(listener) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        let options = readsCommands ? [] : ["-ign_eof"]
        process.arguments = ["openssl", "s_client", "-connect", "127.0.0.1:\(port)"] + options + arguments
        let (input, output, errors) = (Pipe(), Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        // Each line is a separate read of the command, so that commands are recognised.
        let peer = SocketSession(accept(listener, nil, nil), try TLSSession(server: context))
        var outcome = Outcome()
        var lines = says.split(separator: "\n", omittingEmptySubsequences: true).map { $0 + "\n" }
        var text: [UInt8] = []
        while let received = peer.receive() {
            text += received
            if peer.session.handshake != nil, !lines.isEmpty {
                try input.fileHandleForWriting.write(contentsOf: Data(lines.removeFirst().utf8))
            }
            if let answer, text.last == 0x0A, !peer.session.hasSentClose {
                _ = try peer.session.send(Array(answer.utf8).byteSpan)
                peer.session.close()
                peer.flush()
            }
            if peer.session.hasReceivedClose { break }
        }
        outcome.serverHandshake = peer.session.handshake
        outcome.failure = peer.session.failure
        outcome.serverText = String(decoding: text, as: UTF8.self)
        try input.fileHandleForWriting.close()
        outcome.output = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        outcome.errors = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return outcome
    }

    private static func listen() -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                precondition(bind(descriptor, $0, size) == 0 && Glibc.listen(descriptor, 4) == 0)
                precondition(getsockname(descriptor, $0, &size) == 0)
            }
        }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }
}
