// Which server hands over which store.

import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(5)))
struct LeaseSpreadTests {
    /// Lets every server look once a second until nothing moves, and returns how many stores each leads then.
    private func settle(_ leaders: [String: String], servers: Set<String>) -> (counts: [Int], moves: Int) {
        var leaders = leaders
        var spreads = Dictionary(uniqueKeysWithValues: servers.map { ($0, LeaseSpread()) })
        var moves = 0
        var quiet = 0
        while quiet < 3 * LeaseSpread.looksMin {
            quiet += 1
            for server in servers.sorted() {
                guard let move = spreads[server]?.look(server, leaders: leaders, servers: servers) else { continue }
                expect(leaders[move.store] == server && move.server != server)
                leaders[move.store] = move.server
                moves += 1
                quiet = 0
            }
        }
        return (servers.sorted().map { server in leaders.values.count { $0 == server } }, moves)
    }

    @Test
    func `Each server leads about as many stores, with as few moves as that takes`() {
        let all = Dictionary(uniqueKeysWithValues: (0..<7).map { ("s\($0)", "a") })
        let three = settle(all, servers: ["a", "b", "c"])
        expect(three.counts.sorted() == [2, 2, 3] && three.moves == 4)
        let two = settle(["s0": "a", "s1": "a"], servers: ["a", "b"])
        expect(two.counts == [1, 1] && two.moves == 1)
        // A difference of one moves nothing.
        expectEqual(settle(["s0": "a"], servers: ["a", "b"]).moves, 0)
        expectEqual(settle(["s0": "a", "s1": "b", "s2": "a"], servers: ["a", "b"]).moves, 0)
        expectEqual(settle(all, servers: ["a"]).moves, 0)
    }

    @Test
    func `A server that comes and leaves again gets nothing`() {
        var spread = LeaseSpread()
        let leaders = ["s0": "a", "s1": "a"]
        for _ in 0..<100 {
            for _ in 0..<(LeaseSpread.looksMin - 1) {
                expectNil(spread.look("a", leaders: leaders, servers: ["a", "b"]))
            }
            expectNil(spread.look("a", leaders: leaders, servers: ["a"]))
        }
    }
}
