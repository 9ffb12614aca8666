// The messages between a source and its replicas.

import Basics
import DocumentModel
import TestSupport
import Testing

@testable import FirestoreMessages

@Suite(.timeLimit(.minutes(20)))
struct FollowMessageTests {
    private static let responses: [FollowResponse] = [
        .accepted(timeline: 1_700_000_000_000_000), .base(reason: "the replica is new", bytes: 12),
        .base(reason: "", bytes: .max), .file("runs/1.run"), .contents([1, 2, 3]), .contents([]), .baseIsComplete,
        .records([9]), .closed(.max), .derived([1, 2]), .rules("rules_version = '2';"), .groups([4, 5]),
        .revocations([6]),
    ]

    @Test(arguments: responses)
    private func `A message is read as it was written`(response: FollowResponse) throws {
        let bytes = response.encodedBytes()
        try expectEqual(FollowResponse(wire: bytes.byteSpan), response)
    }

    @Test
    func `A request is read as it was written, and unknown fields are skipped`() throws {
        let request = FollowRequest(
            version: 5, timeline: .max, follower: 7,
            place: LogPlaceMessage(storeHigh: .max, storeLow: 1, sequence: 2, hash: 3))
        var bytes = request.encodedBytes()
        try expectEqual(FollowRequest(wire: bytes.byteSpan), request)
        bytes += [0x7A, 1, 0]
        try expectEqual(FollowRequest(wire: bytes.byteSpan), request)
    }

    @Test
    func `A message that is cut anywhere is malformed, or empty, never a trap`() {
        for response in Self.responses {
            let bytes = response.encodedBytes()
            for length in 0..<bytes.count {
                let cut = Array(bytes[..<length])
                let read = try? FollowResponse(wire: cut.byteSpan)
                expect(read == nil || response != read)
            }
        }
        #expect(throws: (any Error).self) { try FollowResponse(wire: [UInt8]().byteSpan) }
    }
}
