// Random conversations of gRPC and HTTP, and damage to them.

import Basics
import ConnectionTestSupport
import TestSupport

enum HTTP2Conversation {
    /// SETTINGS and some frames that belong together.
    static func random(_ random: inout SeededGenerator) -> [UInt8] {
        var frames = [HTTP2Frame.settings((4, UInt32(random.next() % 200_000)))]
        for number in 0..<8 as Range<UInt32> {
            let stream = number * 2 + 1
            let payload = grpcMessage(
                (0..<Int(random.next() % 40)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
            switch random.next() % 11 {
            case 0: frames += [.request(path(.getDocument), stream: stream), .data(payload, stream: stream)]
            case 1:
                frames += [
                    .request(path(.commit), stream: stream, fields: [("grpc-timeout", "30m")]),
                    .data(payload, stream: stream),
                ]
            case 2:
                let middle = payload.count / 2
                frames += [
                    .request(path(.getDocument), stream: stream),
                    .data(Array(payload[..<middle]), stream: stream, endStream: false),
                    .data(Array(payload[middle...]), stream: stream, endStream: false), .data([], stream: stream),
                ]
            case 3:
                let question = grpcMessage(littleEndianBytes(20, 300))
                frames += [.request(path(.runQuery), stream: stream), .data(question, stream: stream)]
            case 4:
                frames += [
                    .request(path(.write), stream: stream), .data(payload, stream: stream, endStream: false),
                    .data(payload + payload, stream: stream, endStream: false), .window(500, stream: stream),
                    .data([], stream: stream),
                ]
            case 5:
                frames += [
                    .request(path(.commit), stream: stream), .data(payload, stream: stream), .reset(8, stream: stream),
                    HTTP2Frame(.ping, [UInt8](repeating: 1, count: 8)),
                ]
            case 6: frames += [.request("/no.such.Service/Method", stream: stream), .data(payload, stream: stream)]
            case 7: frames.append(.headers(http("GET", "/v1/a?b=c"), stream: stream, endStream: true))
            case 8:
                frames += [
                    .headers(http("POST", "/v1/a"), stream: stream), .data(payload, stream: stream, endStream: false),
                    .window(500, stream: stream), .data(payload, stream: stream),
                ]
            case 9:
                let fields = http("HEAD", "/") + [("content-length", "\(payload.count)")]
                frames += [.headers(fields, stream: stream), .data(payload, stream: stream), .reset(8, stream: stream)]
            default:
                frames += [
                    .request(path(.rollback), stream: stream, fields: [("grpc-encoding", "gzip")]),
                    .data(payload, stream: stream),
                ]
            }
        }
        return frames.flatMap(\.bytes)
    }

    private static func http(_ method: String, _ path: String) -> [(String, String)] {
        [
            (":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path),
            ("origin", "http://o"),
        ]
    }

    /// Changes, drops and repeats a few bytes.
    static func mutate(_ bytes: inout [UInt8], _ random: inout SeededGenerator) {
        for _ in 0..<Int(random.next() % 6) {
            let place = Int(random.next() % UInt64(bytes.count))
            switch random.next() % 4 {
            case 0: bytes[place] = UInt8(truncatingIfNeeded: random.next())
            case 1: bytes[place] ^= 1 << UInt8(random.next() % 8)
            case 2: bytes.remove(at: place)
            default: bytes.insert(contentsOf: bytes[..<min(place, 30)], at: place)
            }
        }
    }
}
