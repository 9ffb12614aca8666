// The pure parts of gRPC: messages cut out of bytes, header fields, percent-encoding.

import Basics
import ConnectionTestSupport
import TestSupport
import Testing

@testable import Calls
@testable import HTTPProtocols

@Suite(.timeLimit(.minutes(20))) struct GRPCFramingTests {
    // MARK: MessageReader

    /// Reads messages from `bytes` in pieces of `size`.
    private func read(_ bytes: [UInt8], size: Int, bytesMax: Int = 1_000) -> (
        messages: [[UInt8]], last: MessageReader.Step?, inside: Bool
    ) {
        var reader = MessageReader()
        var messages: [[UInt8]] = []
        var kept: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            let piece = Array(bytes[start..<min(start + size, bytes.count)])
            var offset = 0
            while offset < piece.count {
                let step = reader.next(piece.span.bytes, &offset, bytesMax: bytesMax)
                switch step {
                case .incomplete: break
                case .part(let range): kept += piece[range]
                case .whole(let range): messages.append(Array(piece[range]))
                case .lastPart(let range):
                    messages.append(kept + piece[range])
                    kept = []
                case .reservedFlag, .tooLarge: return (messages, step, true)
                }
            }
        }
        return (messages, nil, reader.isInsideMessage)
    }

    @Test(arguments: [1, 2, 3, 5, 7, 100])
    func `Messages are found however their bytes are cut`(size: Int) {
        let messages: [[UInt8]] = [[], [1], Array(0..<200), [], [9, 9, 9]]
        let (found, last, inside) = read(messages.flatMap { grpcMessage($0) }, size: size)
        expectEqual(found, messages)
        expectNil(last)
        expect(!inside)
    }

    @Test func `Limits and flags are checked as soon as the prefix is there`() {
        expectEqual(read([0, 0, 0, 3, 0xE9], size: 9).last, .tooLarge)
        expectNil(read([0, 0, 0, 3, 0xE8], size: 9).last)
        expectEqual(read([0, 0xFF, 0xFF, 0xFF, 0xFF], size: 1).last, .tooLarge)
        expectEqual(read([7, 0, 0, 0, 0], size: 9).last, .reservedFlag(7))
        expect(read([0, 0, 0], size: 9).inside)
        expect(read(Array(grpcMessage([1, 2]).dropLast()), size: 9).inside)
    }

    @Test(arguments: [31, 32, 33] as [UInt64])
    func `Random bytes in random pieces mean the same as in one piece`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for round in 0..<500 {
            var bytes: [UInt8] = []
            for _ in 0..<Int(random.next() % 6) {
                bytes += grpcMessage(
                    (0..<Int(random.next() % 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
            }
            if !bytes.isEmpty { HTTP2Conversation.mutate(&bytes, &random) }
            let whole = read(bytes, size: max(bytes.count, 1))
            let pieces = read(bytes, size: 1 + Int(random.next() % 20))
            expect(whole == pieces, "seed \(seed), round \(round)")
        }
    }

    // MARK: Fields

    private func outcome(_ fields: [(String, String)], bytesMax: Int = 8_192) -> RequestFields.Validity {
        var gathered = RequestFields(rpcs: TestProcedures.table)
        for (name, value) in fields {
            let (name, value) = (Array(name.utf8), Array(value.utf8))
            gathered.take(name.span.bytes, value.span.bytes, bytesMax: bytesMax)
        }
        return gathered.validity(bytesMax: bytesMax)
    }

    private func rpc(at path: String) -> RPC? {
        let bytes = Array(path.utf8)
        return TestProcedures.table.rpc(at: bytes.span.bytes)
    }

    private func timeout(_ text: String) -> RequestFields.Timeout {
        let bytes = Array(text.utf8)
        return RequestFields.timeout(bytes.span.bytes)
    }

    @Test func `Every method is found by each of its paths and by no other`() {
        for entry in TestProcedures.entries {
            for path in entry.paths {
                expectEqual(rpc(at: path), entry.rpc)
                expectNil(rpc(at: String(path.dropLast())))
                expectNil(rpc(at: path + "x"))
                expectNil(rpc(at: path.lowercased()))
            }
        }
    }

    @Test(
        arguments: [
            ("1H", 3_600_000), ("1M", 60_000), ("301S", 301_000), ("60100m", 60_100), ("1u", 1), ("1000u", 1),
            ("1001u", 2), ("1n", 1),
            ("0m", 0), ("99999999H", UInt32.max), ("00000001S", 1_000),
        ] as [(String, UInt32)])
    func `A timeout is read in its unit, rounded up`(text: String, milliseconds: UInt32) {
        expectEqual(timeout(text), .milliseconds(milliseconds))
    }

    @Test(arguments: ["", "S", "1", "1s", "-1S", "1.5S", "123456789S", " 1S", "1S ", "１S"])
    func `A malformed timeout differs from a missing one`(text: String) {
        expectEqual(timeout(text), .malformed)
        let fields = HTTP2Frame.grpcFields(path(.getDocument)) + [("grpc-timeout", text)]
        expectEqual(outcome(fields), .refuse(.malformedTimeout))
    }

    @Test func `The first thing wrong decides`() {
        let good = HTTP2Frame.grpcFields(path(.runQuery))
        expectEqual(outcome(good), .call(RequestHead(rpc: .runQuery, isComplete: false), .identity))
        expectEqual(
            outcome(good + [("grpc-encoding", "gzip")]), .call(RequestHead(rpc: .runQuery, isComplete: false), .gzip))
        expectEqual(outcome(good + [("grpc-encoding", "br")]), .refuse(.unsupportedEncoding))
        expectEqual(outcome([(":method", "GET"), (":path", "/")]), .status(.methodNotAllowed))
        expectEqual(outcome([(":method", "POST"), (":path", "/")]), .status(.unsupportedMediaType))
        expectEqual(
            outcome(good + [("x", String(repeating: "y", count: 8_000))]), .refuse(.metadataTooLarge(max: 8_192)))
        let path = "/" + String(repeating: "p", count: 1_000)
        expectEqual(
            outcome([(":method", "POST"), ("content-type", "application/grpc"), (":path", path)]),
            .refuse(.unknownPath(String(path.prefix(200)))))
    }

    // MARK: Statuses

    @Test(arguments: [
        ("", ""), ("plain text!", "plain text!"), ("100%", "100%25"), ("é%\n", "%C3%A9%25%0A"),
        ("\u{7F}\t~", "%7F%09~"), ("😀", "%F0%9F%98%80"),
    ])
    func `A text is percent-encoded byte by byte`(text: String, encoded: String) {
        expectEqual(String(decoding: StatusFields.encode(text), as: UTF8.self), encoded)
    }

    @Test func `A long text is cut at the start of a character`() {
        let encoded = StatusFields.encode("a" + String(repeating: "é", count: 3_000))
        expectEqual(encoded.count, 1 + 2_047 * 6)
    }

    // MARK: Compression

    private func inflate(_ bytes: [UInt8], bytesMax: Int) -> Result<[UInt8], InflateFailure> {
        do throws(InflateFailure) {
            return .success(try Inflater.inflate(bytes.span.bytes, bytesMax: bytesMax))
        } catch {
            return .failure(error)
        }
    }

    @Test(arguments: [0, 1, 1_000, 100_000, 300_000])
    func `What is deflated comes back, within the limit and not beyond`(size: Int) {
        let plain = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* $0) }
        let packed = Compressed.zlib(plain)
        expectEqual(inflate(packed, bytesMax: size), .success(plain))
        if size > 0 { expectEqual(inflate(packed, bytesMax: size - 1), .failure(.tooLarge)) }
        expectEqual(inflate(packed.dropLast(), bytesMax: size), .failure(.malformed))
        expectEqual(inflate(packed + [0], bytesMax: size), .failure(.malformed))
    }

    @Test(arguments: [1, 7, 4_096, 99_999, 100_000, 100_001])
    func `What is inflated in pieces comes back, and no piece is longer than asked`(pieceBytes: Int) throws {
        let plain = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 1_000) }
        let packed = Compressed.zlib(plain)
        let inflation = Inflation(bytesMax: plain.count)
        var steps = 1
        while try !inflation.step(packed.byteSpan, pieceBytes: pieceBytes) { steps += 1 }
        expectEqual(inflation.output, plain)
        expect(steps >= plain.count / pieceBytes && steps <= plain.count / pieceBytes + 2)
        let bounded = Inflation(bytesMax: plain.count - 1)
        #expect(throws: InflateFailure.tooLarge) {
            while try !bounded.step(packed.byteSpan, pieceBytes: pieceBytes) {}
        }
    }
}
