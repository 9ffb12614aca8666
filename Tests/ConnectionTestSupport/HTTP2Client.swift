// A blocking HTTP/2 client of tests, over RawClient.

package import Basics
import HTTPProtocols
import TestSupport
import Testing

package final class HTTP2Client {
    package let raw: RawClient
    package private(set) var transcript = HTTP2Transcript()
    private var nextStream: UInt32 = 1

    /// Connects and exchanges settings, so that the server's limits are in force.
    package convenience init(_ live: LiveServer, settings: (UInt16, UInt32)...) {
        self.init(port: live.server.port, settings: settings)
    }

    package convenience init(port: UInt16, settings: [(UInt16, UInt32)] = []) {
        self.init(RawClient(port: port), settings: settings)
    }

    package init(_ raw: RawClient, settings: [(UInt16, UInt32)] = []) {
        self.raw = raw
        var hello = HTTP2Frame.settings()
        hello.payload = settings.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 255)] + bigEndian($0.1) }
        raw.send(HTTP2Preface.bytes + hello.bytes)
        expect(read { !$0.frames.isEmpty }, "the server sent no settings")
        send(HTTP2Frame(.settings, HTTP2Frame.ack, []))
    }

    package func send(_ frames: HTTP2Frame...) { raw.send(frames.flatMap(\.bytes)) }

    /// Sends a whole unary request and returns its stream.
    package func request(
        _ rpc: RPC, _ payload: [UInt8], fields: [(String, String)] = [], endStream: Bool = true
    ) -> UInt32 {
        let stream = newStream()
        send(
            .request(path(rpc), stream: stream, fields: fields),
            .data(grpcMessage(payload), stream: stream, endStream: endStream))
        return stream
    }

    /// Sends a whole unary request whose answer is not read.
    package func sendRequest(_ rpc: RPC, _ payload: [UInt8]) { _ = request(rpc, payload) }

    package func newStream() -> UInt32 {
        defer { nextStream += 2 }
        return nextStream
    }

    /// Reads until `isTrue` holds; false when the server closes before, or is silent for `waitSecondsMax`.
    package func read(until isTrue: (HTTP2Transcript) -> Bool) -> Bool {
        while !isTrue(transcript) {
            let bytes = raw.receive()
            if bytes.isEmpty { return isTrue(transcript) }
            transcript.add(bytes)
        }
        return true
    }

    /// The answer on a stream: whole, or what had come of it when the connection ended.
    package func answer(_ stream: UInt32) -> HTTP2Answer {
        _ = read { $0.answers[stream].map { $0.isEnded || $0.reset != nil } ?? false }
        return transcript.answers[stream] ?? HTTP2Answer()
    }

    package func callAndWait(_ rpc: RPC, _ payload: [UInt8], fields: [(String, String)] = []) -> HTTP2Answer {
        answer(request(rpc, payload, fields: fields))
    }

    /// Sends a PING and returns after its acknowledgement: the server has processed everything before it.
    ///
    /// A connection that the server has announced to close needs no answer.
    package func ping() {
        let count = transcript.frames.count { $0.isKind(.ping) && $0.flags & HTTP2Frame.ack != 0 }
        send(HTTP2Frame(.ping, [UInt8](repeating: 7, count: 8)))
        let isAnswered = read { $0.frames.count { $0.isKind(.ping) && $0.flags & HTTP2Frame.ack != 0 } > count }
        expect(isAnswered || !transcript.goAways.isEmpty, "a PING was not answered")
    }

    /// Everything until the server closes.
    package func readAll() -> HTTP2Transcript {
        _ = read { _ in false }
        return transcript
    }
}

extension HTTP2Frame {
    package init(_ kind: Kind, _ payload: [UInt8]) { self.init(kind, 0, stream: 0, payload) }
}
