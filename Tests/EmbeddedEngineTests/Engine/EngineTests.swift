// Committing and reading, through the public face of the engine.

import EngineTestSupport
import Storage
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct EngineTests {
    let directory = TemporaryDirectory()

    @Test
    func `A commit is visible once it is sealed, and still there after reopening`() throws {
        do {
            let store = try Store(directory.path)
            try store.stage(10, [.put("a", "1"), .put("b", "2")])
            try expectNil(store.get("a"))
            try expectEqual(store.writer.commitGroup().microseconds, 10)
            try expectEqual(store.get("a"), "1")
            try store.commit(11, [.delete("a"), .put("c", "3")])
            try expectNil(store.get("a"))
            try expectEqual(store.get("a", at: 10), "1")
            try store.engine.close()
        }
        try expectClean(directory.path)
        let store = try Store(directory.path)
        expectEqual(store.replayed, [])
        expectEqual(store.engine.publishedVersion.microseconds, 11)
        try expectEqual(store.scan().description, "[b=2@10, c=3@11]")
        try expectEqual(store.scan(at: 10).description, "[a=1@10, b=2@10]")
        try expectEqual(store.scan(.backward).description, "[c=3@11, b=2@10]")
        try store.engine.close()
        try expectClean(directory.path)
    }
}
