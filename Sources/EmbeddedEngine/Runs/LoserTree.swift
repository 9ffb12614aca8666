/// A tournament among sources, of which the winner is the next to be taken (Knuth, 5.4.1). When a source has moved, as
/// many comparisons as the tree has levels find the next winner.
///
///     0: the winner      1 ... count - 1: the loser of each match      leaves: the sources
@safe
struct LoserTree: ~Copyable {
    private let nodes: UnsafeMutablePointer<Int>
    let count: Int

    /// - Parameter count: at least 1.
    init(count: Int) {
        self.count = count
        unsafe nodes = .allocate(capacity: count)
        unsafe nodes.initialize(repeating: 0, count: count)
    }

    deinit { unsafe nodes.deallocate() }

    @inline(__always)
    var winner: Int { unsafe nodes[0] }

    /// Plays all matches.
    mutating func build(_ isBefore: (Int, Int) -> Bool) {
        // Until its first match is played, a node has nobody.
        for node in 0..<count { unsafe nodes[node] = -1 }
        for source in 0..<count {
            var winner = source
            var node = (source + count) / 2
            while node > 0 {
                let waiting = unsafe nodes[node]
                if waiting < 0 {
                    unsafe nodes[node] = winner
                    winner = -1
                    break
                }
                if isBefore(waiting, winner) {
                    unsafe nodes[node] = winner
                    winner = waiting
                }
                node /= 2
            }
            if winner >= 0 { unsafe nodes[0] = winner }
        }
    }

    /// Plays the winner's matches again after it has moved.
    @inline(__always)
    mutating func replay(_ isBefore: (Int, Int) -> Bool) {
        var winner = unsafe nodes[0]
        var node = (winner &+ count) / 2
        while node > 0 {
            let other = unsafe nodes[node]
            if isBefore(other, winner) {
                unsafe nodes[node] = winner
                winner = other
            }
            node /= 2
        }
        unsafe nodes[0] = winner
    }
}
