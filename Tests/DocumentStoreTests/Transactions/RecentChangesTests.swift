// The ring of recent changes remembers what it says it remembers.

import Basics
import DocumentModel
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)))
struct RecentChangesTests {
    @Test(arguments: [UInt64(31), 32])
    func `Everything above the coverage is found, newest first; rolled back commits leave no trace`(seed: UInt64) throws
    {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        var ring = RecentChanges(maximum: 100, since: 1_000)
        var model: [(version: UInt64, key: [UInt8])] = []
        var version: UInt64 = 1_000
        for _ in 0..<500 {
            version += 1 + UInt64(generator.below(3))
            ring.beginCommit()
            let keys = (0..<generator.below(6)).map { _ in
                (0..<(1 + generator.below(9))).map { _ in UInt8(generator.below(200)) }
            }
            for key in keys { ring.append(key: key.byteSpan, version: version) }
            if generator.oneIn(4) {
                ring.rollBack(version: version)
            } else {
                model.append(contentsOf: keys.map { (version, $0) })
            }
            let since = max(ring.coverage, version - min(version, UInt64(generator.below(80))))
            var found: [[UInt8]] = []
            try ring.forEachKey(since: since) { (key, _) throws(RequestError) in
                found.append([UInt8](copying: key))
                return true
            }
            expectEqual(found, model.filter { $0.version > since }.reversed().map(\.key))
        }
        expect(ring.coverage > 1_000)
        expect(ring.count <= 110)
    }
}
