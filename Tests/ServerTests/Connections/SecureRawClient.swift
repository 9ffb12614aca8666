// A client of tests over TLS, over RawClient.

import Basics
import ConnectionTestSupport
import TLS
import Testing

/// A blocking client with TLS that sends its ciphertext in pieces.
final class SecureRawClient {
    let session: TLSSession
    private let raw: RawClient
    private let piece: Int
    private var received: [UInt8] = []

    /// Connects, and completes the handshake.
    ///
    /// - Parameter prefix: sent in plain text before the handshake, in pieces too.
    init(_ live: LiveServer, _ context: TLSContext, piece: Int, after prefix: [UInt8] = []) throws {
        raw = RawClient(port: live.server.port)
        session = try TLSSession(client: context, serverName: "127.0.0.1")
        self.piece = piece
        sendInPieces(prefix)
        sendOutput()
        while session.handshake == nil {
            guard receiveOnce() else {
                Issue.record("the handshake did not end")
                return
            }
        }
    }

    func send(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            guard let count = try? session.send(Array(rest).span.bytes) else { return }
            rest = rest.dropFirst(count)
            sendOutput()
        }
    }

    /// Whole frames received, as soon as they are as `isEnough` says or the connection ends.
    func receive(_ isEnough: ([TestFrame]) -> Bool) -> [TestFrame] {
        while !isEnough(TestFrame.all(in: received)), receiveOnce() {}
        return TestFrame.all(in: received)
    }

    /// Takes what has come; false at the end.
    private func receiveOnce() -> Bool {
        let bytes = raw.receive()
        guard !bytes.isEmpty, !session.hasReceivedClose else { return false }
        var plain = ByteBuffer(capacity: 0)
        guard (try? session.receive(bytes.span.bytes, into: &plain)) != nil else { return false }
        received += plain.copyBytes()
        sendOutput()
        return true
    }

    private func sendOutput() {
        var output = ByteBuffer(capacity: 0)
        session.takeOutput(into: &output)
        sendInPieces(output.copyBytes())
    }

    private func sendInPieces(_ bytes: [UInt8]) {
        for start in stride(from: 0, to: bytes.count, by: piece) { raw.send(Array(bytes[start...].prefix(piece))) }
    }
}
