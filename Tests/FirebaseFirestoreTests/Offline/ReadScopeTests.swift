// Which documents a total or a pipeline may read.

import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct ReadScopeTests {
    private func contains(_ scope: ReadScope, _ path: String) -> Bool { scope.contains(Array(path.utf8)) }

    @Test
    func `A collection stands for all collections with its id, and a document for itself`() {
        for collection in ["tasks", "users/u1/tasks"] {
            let scope = ReadScope(collection: collection)
            expect(contains(scope, "tasks/t1") && contains(scope, "users/u1/tasks/t1"))
            expect(!contains(scope, "users/tasks") && !contains(scope, "tasks/t1/users/u1"))
        }
        var scope = ReadScope(documents: ["users/u1"])
        expect(contains(scope, "users/u1") && !contains(scope, "users/u2") && !contains(scope, "users/u1/tasks/t1"))
        scope.formUnion(ReadScope(collection: "tasks"))
        expect(contains(scope, "users/u1") && contains(scope, "users/u1/tasks/t1") && !contains(scope, "users/u2"))
        scope.formUnion(.everything)
        expect(contains(scope, "users/u2"))
        expect(!contains(ReadScope(), "users/u1"))
    }

    @Test
    func `Ids that are the same text in other bytes are different collections`() {
        expect(contains(ReadScope(collection: "\u{e9}"), "\u{e9}/d"))
        expect(!contains(ReadScope(collection: "\u{e9}"), "e\u{301}/d"))
    }
}
