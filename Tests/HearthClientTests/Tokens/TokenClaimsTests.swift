// What a client reads of a token.

import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct TokenClaimsTests {
    @Test
    func `The user is user_id, or else sub`() {
        expectEqual(TokenClaims(TestToken.make(#"{"sub":"a","user_id":"b"}"#))?.user, "b")
        expectEqual(TokenClaims(TestToken.make(#"{"sub":"a"}"#))?.user, "a")
        expect(TokenClaims(TestToken.make("{}")) != nil)
        expectNil(TokenClaims(TestToken.make("{}"))?.user)
        expectEqual(TokenClaims(TestToken.make(#"{"user_id":7,"sub":"a"}"#))?.user, "a")
    }

    @Test(arguments: [
        "", "secret", "a.b", "a.b.c.d", "a.!!!.c", "..", "a.\(TestToken.base64URL("[1]")).c",
        "a.\(TestToken.base64URL(String(repeating: "[", count: 10_000))).c",
        "a.\(TestToken.base64URL(#"{"a":"# + String(repeating: "[", count: 9_000))).c",
    ])
    func `Other tokens have no claims`(token: String) {
        expectNil(TokenClaims(token))
    }

    @Test(arguments: ["-1", "1.5", "\"9\"", "9e9", "99999999999999999999", "253402300800", "null", "[]"])
    func `An end that cannot be read does not count`(moment: String) throws {
        let claims = try #require(TokenClaims(TestToken.make(#"{"exp":\#(moment)}"#)))
        expectNil(claims.millisecondsLeft(wall: 0))
        expectNil(claims.refreshMilliseconds(wall: 0))
    }

    @Test
    func `A token is replaced five minutes before its end, a short one after 80 % of its life`() throws {
        func refresh(_ claims: String, now: Int64) throws -> Int64? {
            try #require(TokenClaims(TestToken.make(claims))).refreshMilliseconds(wall: now * 1_000)
        }
        try expectEqual(refresh(#"{"iat":1000,"exp":4600}"#, now: 1_000), 3_300_000)
        try expectEqual(refresh(#"{"iat":1000,"exp":4600}"#, now: 4_000), 300_000)
        try expectEqual(refresh(#"{"iat":1000,"exp":2500}"#, now: 1_000), 1_200_000)
        try expectEqual(refresh(#"{"iat":1000,"exp":1010}"#, now: 1_000), 8_000)
        try expectEqual(refresh(#"{"iat":1000,"exp":1010}"#, now: 1_009), -1_000)
        // Without `iat` the life counts from now.
        try expectEqual(refresh(#"{"exp":1010}"#, now: 1_000), 8_000)
        try expectEqual(refresh(#"{"iat":5000,"exp":1010}"#, now: 1_000), 10_000)
        try expectEqual(refresh(#"{"iat":0,"exp":253402300799}"#, now: 0), 253_402_300_499_000)
    }
}
