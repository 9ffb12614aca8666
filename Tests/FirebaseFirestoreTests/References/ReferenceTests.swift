// References and their paths.

import FirebaseFirestore
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct ReferenceTests {
    private let firestore = TestFirestore.detached()

    @Test
    func `Paths go down and up again`() {
        let task = firestore.collection("users").document("u1").collection("tasks").document("t1")
        expectEqual(task.path, "users/u1/tasks/t1")
        expectEqual(task.documentID, "t1")
        expectEqual(task.parent.path, "users/u1/tasks")
        expectEqual(task.parent.collectionID, "tasks")
        expectEqual(task.parent.parent?.path, "users/u1")
        expectNil(firestore.collection("users").parent)
        expectEqual(task, firestore.document("users/u1/tasks/t1"))
        expect(task.firestore === firestore)
    }

    @Test
    func `References are equal and hash alike if they name the same place of the same database object`() {
        let other = TestFirestore.detached()
        expectEqual(firestore.document("a/b"), firestore.collection("a").document("b"))
        expect(firestore.document("a/b") != firestore.document("a/c"))
        expect(firestore.document("a/b") != other.document("a/b"))
        expectEqual(Set([firestore.document("a/b"), firestore.document("/a/b/")]).count, 1)
        expectEqual(Set([firestore.collection("a"), firestore.collection("a")]).count, 1)
    }

    @Test
    func `Ids that are the same text in other bytes are different places`() {
        let (composed, decomposed) = ("\u{e9}", "e\u{301}")
        expect(firestore.document("a/\(composed)") != firestore.document("a/\(decomposed)"))
        expectEqual(Set([composed, decomposed].map { firestore.collection($0) }).count, 2)
        expect(firestore.collection("\(composed)/b/c") != firestore.collection("\(decomposed)/b/c"))
        expect(firestore.collectionGroup(composed) != firestore.collectionGroup(decomposed))
        expectEqual(firestore.collection(composed), firestore.collection(composed))
        expect(
            firestore.collection("a").whereField(FieldPath([composed]), isEqualTo: 1)
                != firestore.collection("a").whereField(FieldPath([decomposed]), isEqualTo: 1))
    }

    @Test
    func `New documents get different ids of 20 characters`() {
        let first = firestore.collection("a").document()
        let second = firestore.collection("a").document()
        expectEqual(first.documentID.count, 20)
        expect(first != second)
    }

    @Test
    func `A wrong number of segments traps with the rule on standard error`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = Firestore.firestore().collection("a/b")
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("Collection references must have an odd number of segments, but a/b has 2"))
    }
}
