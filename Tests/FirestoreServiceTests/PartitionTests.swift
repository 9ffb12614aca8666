// PartitionQuery through the service: even parts, in order, whatever the shape of the collections.

import DocumentModel
import FirestoreMessages
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct PartitionTests {
    private let fields = Harness.fields(["a": .integer(1)])
    private let group = StructuredQuery(
        from: [CollectionSelector(collectionID: "posts", allDescendants: true)],
        orderBy: [Order(field: .documentName, direction: .ascending)])

    /// Sets documents, some thousand in a commit.
    private func fill(_ harness: Harness, _ paths: [String]) throws {
        for start in stride(from: 0, to: paths.count, by: 5_000) {
            var writes = try harness.emptyWrites()
            for path in paths[start..<min(start + 5_000, paths.count)] {
                try Harness.name(path).withUTF8Span { try writes.update($0, fields: fields.span.bytes) }
            }
            try harness.commit(writes)
        }
    }

    private func name(_ cursor: Cursor) throws -> String {
        expect(cursor.before && cursor.values.count == 1)
        let bytes = cursor.values[0].bytes
        guard case .reference(let name) = try Value(wire: bytes.span.bytes) else { return "" }
        return name
    }

    private func partition(_ harness: Harness, _ count: Int64) throws -> [String] {
        try harness.message(
            .partitionQuery, PartitionQueryRequest(parent: Harness.root, query: group, partitionCount: count),
            as: PartitionQueryResponse.self
        ).partitions.map(name)
    }

    /// Documents between the cuts.
    private func sizes(_ names: [String], cutAt cuts: [String]) -> [Int] {
        var sizes = [Int](repeating: 0, count: cuts.count + 1)
        for name in names {
            sizes[cuts.count { Array($0.utf8).lexicographicallyPrecedes(Array(name.utf8)) || $0 == name }] += 1
        }
        return sizes
    }

    @Test
    func `Fewer documents than two partitions need are not cut`() throws {
        let harness = try Harness()
        try expectEqual(partition(harness, 3), [])
        try fill(harness, (0..<255).map { "posts/\($0)" })
        try expectEqual(partition(harness, 3), [])
        try fill(harness, ["posts/one more"])
        try expectEqual(partition(harness, 3).count, 1)
    }

    @Test
    func `Many small collections are cut into even parts`() throws {
        let harness = try Harness()
        var paths: [String] = []
        for parent in 100..<300 { paths += (0..<7).map { "users/u\(parent)/posts/p\($0)" } }
        paths += (0..<100).map { "posts/\($0 + 100)" }
        try fill(harness, paths)
        try fill(harness, (0..<500).map { "other/\($0)" })
        let cuts = try partition(harness, 4)
        expectEqual(cuts.count, 4)
        let sizes = sizes(paths.map(Harness.name), cutAt: cuts)
        expect(sizes.allSatisfy { $0 >= 290 && $0 <= 310 }, "\(sizes)")
    }

    @Test(arguments: CaseShare.of([true, false], 1))
    func `A large collection is cut into about even parts by a sample`(isCounting: Bool) throws {
        let harness = try Harness()
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
        var paths: [String] = []
        for number in 0..<17_000 {
            // Ids that count up under one prefix, with a few of another; or random ones.
            let id =
                isCounting
                ? number % 10 == 0 ? "b-\(number)" : "a-\(number)"
                : String((0..<20).map { _ in digits.randomElement()! })
            paths.append("posts/\(id)")
        }
        try fill(harness, paths)
        let cuts = try partition(harness, 7)
        expectEqual(cuts.count, 7)
        expectEqual(cuts, cuts.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) })
        let sizes = sizes(paths.map(Harness.name), cutAt: cuts)
        expect(sizes.allSatisfy { $0 > 1_000 && $0 < 4_000 }, "\(sizes)")
    }

    @Test
    func `Pages give the same cursors as one answer`() throws {
        let harness = try Harness()
        try fill(harness, (0..<2_000).map { "posts/\($0)" })
        let all = try partition(harness, 9)
        expectEqual(all.count, 9)
        var paged: [String] = []
        var token = ""
        repeat {
            let page = try harness.message(
                .partitionQuery,
                PartitionQueryRequest(
                    parent: Harness.root, query: group, partitionCount: 9, pageToken: token, pageSize: 4),
                as: PartitionQueryResponse.self)
            expect(page.partitions.count <= 4 && !page.partitions.isEmpty)
            paged += try page.partitions.map(name)
            token = page.nextPageToken
        } while !token.isEmpty
        expectEqual(paged, all)
    }

    @Test
    func `What cannot be partitioned is refused`() throws {
        let harness = try Harness()
        var filtered = group
        filtered.filter = try .field(FieldPath("a"), .equal, EncodedValue(.integer(1)))
        var collection = group
        collection.from = [CollectionSelector(collectionID: "posts")]
        var descending = group
        descending.orderBy = [Order(field: .documentName, direction: .descending)]
        var limited = group
        limited.limit = 3
        let requests = [
            PartitionQueryRequest(parent: Harness.root, query: nil, partitionCount: 3),
            PartitionQueryRequest(parent: Harness.root, query: group, partitionCount: 0),
            PartitionQueryRequest(parent: Harness.root, query: group, partitionCount: 3, pageSize: -1),
            PartitionQueryRequest(parent: Harness.root, query: group, partitionCount: 3, pageToken: "zz"),
            PartitionQueryRequest(parent: Harness.name("a/b"), query: group, partitionCount: 3),
            PartitionQueryRequest(parent: Harness.root, query: filtered, partitionCount: 3),
            PartitionQueryRequest(parent: Harness.root, query: collection, partitionCount: 3),
            PartitionQueryRequest(parent: Harness.root, query: descending, partitionCount: 3),
            PartitionQueryRequest(parent: Harness.root, query: limited, partitionCount: 3),
        ]
        for request in requests { expectEqual(harness.call(.partitionQuery, request).status, .invalidArgument) }
    }
}
