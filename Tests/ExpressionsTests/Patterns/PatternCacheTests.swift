// The cache of patterns.

import Expressions
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct PatternCacheTests {
    @Test
    func `A pattern is compiled once, as long as it is kept`() throws {
        let cache = PatternCache(capacity: 2)
        let first = try #require(cache.compiled("a").pattern)
        expect(cache.compiled("a").pattern === first)
        expectNil(cache.compiled("(").pattern)
        expectEqual(cache.count, 2)
    }

    @Test
    func `The pattern that was not used for the longest time makes room`() throws {
        let cache = PatternCache(capacity: 2)
        let first = try #require(cache.compiled("a").pattern)
        _ = cache.compiled("b").pattern
        expect(cache.compiled("a").pattern === first)
        for index in 0..<50 {
            _ = cache.compiled("c\(index)").pattern
            expect(cache.compiled("a").pattern === first)
        }
        expectEqual(cache.count, 2)
    }

    @Test
    func `Texts that are equivalent in Unicode are different patterns`() throws {
        let cache = PatternCache()
        try expect(#require(cache.compiled("\u{E9}").pattern).matchesWhole("\u{E9}"))
        try expect(#require(cache.compiled("e\u{301}").pattern).matchesWhole("e\u{301}"))
    }
}
