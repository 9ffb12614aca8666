import TestSupport
import Testing

@testable import Identity

@Suite(.timeLimit(.minutes(20))) struct RecentTokensTests {
    @Test
    func `Memory is bounded, and what is used stays`() {
        let tokens = RecentTokens<Int>(entriesMax: 100)
        let used = SHA256Hash(of: [1, 2, 3])
        tokens.remember(used, -1)
        for number in 0..<10_000 {
            tokens.remember(SHA256Hash(of: Array("\(number)".utf8)), number)
            expect(tokens.count <= 100)
            if number % 20 == 0 { expectEqual(tokens.value(of: used), -1) }
        }
        expectEqual(tokens.value(of: SHA256Hash(of: Array("9999".utf8))), 9999)
        expectNil(tokens.value(of: SHA256Hash(of: Array("0".utf8))))
    }
}
