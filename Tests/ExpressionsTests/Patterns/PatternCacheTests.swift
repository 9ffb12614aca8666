// The cache of patterns.

import Expressions
import Testing

@Suite(.timeLimit(.minutes(20)))
struct PatternCacheTests {
    @Test
    func `A pattern is compiled once, as long as it is kept`() throws {
        let cache = PatternCache(capacity: 2)
        let first = try #require(cache.pattern("a"))
        #expect(cache.pattern("a") === first)
        #expect(cache.pattern("(") == nil)
        #expect(cache.count == 2)
    }

    @Test
    func `The pattern that was not used for the longest time makes room`() throws {
        let cache = PatternCache(capacity: 2)
        let first = try #require(cache.pattern("a"))
        _ = cache.pattern("b")
        #expect(cache.pattern("a") === first)
        for index in 0..<50 {
            _ = cache.pattern("c\(index)")
            #expect(cache.pattern("a") === first)
        }
        #expect(cache.count == 2)
    }

    @Test
    func `Texts that are equivalent in Unicode are different patterns`() throws {
        let cache = PatternCache()
        #expect(try #require(cache.pattern("\u{E9}")).matchesWhole("\u{E9}"))
        #expect(try #require(cache.pattern("e\u{301}")).matchesWhole("e\u{301}"))
    }
}
