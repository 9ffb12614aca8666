// Collection groups whose ids are the same text to a reader and differ in their bytes.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing

@Suite(.timeLimit(.minutes(20)))
struct GroupNameTests {
    private static let composed = "caf\u{E9}"
    private static let decomposed = "cafe\u{301}"

    private static func bytes(_ ids: [String]) -> Set<[UInt8]> { Set(ids.map { Array($0.utf8) }) }

    private static func shape(_ collectionID: String) throws -> IndexShape {
        let parts = try ["a", "b"].map { IndexShape.Part(field: try FieldPath($0), kind: .ascending) }
        return IndexShape(collectionID: collectionID, isGroup: false, parts: parts)
    }

    @Test
    func `Groups whose ids differ in bytes alone have their own indexes and overrides`() async throws {
        let model = try IndexedModel()
        let ids = [Self.composed, Self.decomposed]
        try await model.harness.commit(ids.map { .set("\($0)/x", ["a": 1, "b": 2, "notes": "n"]) })
        let (notes, until) = (try FieldPath("notes"), try FieldPath("until"))
        try await model.declare(
            IndexDeclaration(
                indexes: try ids.map(Self.shape),
                fieldOverrides: [
                    FieldOverride(collectionID: Self.composed, field: notes, indexes: []),
                    FieldOverride(collectionID: Self.composed, field: until, indexes: nil, expires: true),
                    FieldOverride(collectionID: Self.decomposed, field: until, indexes: nil, expires: true),
                ]))
        try await model.waitForIndexes()
        let (store, database) = (model.harness.store, model.harness.database)
        let declared = store.declaredIndexes(in: database).map(\.shape)
        for id in ids { expectEqual(declared.count { $0.collectionID.utf8.elementsEqual(id.utf8) }, 2) }
        let settings = store.fieldSettings(in: database)
        expectEqual(Self.bytes(settings.map(\.collectionID)), Self.bytes(ids))
        for group in settings {
            let isComposed = group.collectionID.utf8.elementsEqual(Self.composed.utf8)
            expectEqual(group.declared.count, isComposed ? 2 : 1)
        }
        // Another declaration changes one of them alone.
        try await model.declare(IndexDeclaration(indexes: [try Self.shape(Self.decomposed)]))
        try await model.waitForIndexes()
        let left = store.declaredIndexes(in: database).filter { $0.state == .ready }.map(\.shape.collectionID)
        expect(Self.bytes(left) == Self.bytes([Self.decomposed]) && left.count == 1)
        try model.harness.finish()
    }

    @Test
    func `A check expects no entries of a group whose id differs in bytes from that of the index`() async throws {
        let model = try IndexedModel()
        for id in [Self.composed, Self.decomposed] {
            try await model.harness.commit([.set("\(id)/x", ["a": 1, "b": 2])])
        }
        try await model.declare([try Self.shape(Self.composed)])
        try await model.waitForIndexes()
        // It checks the store.
        try model.harness.finish()
    }
}
