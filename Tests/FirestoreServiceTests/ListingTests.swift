// ListDocuments and ListCollectionIds, page by page.

import Basics
import DocumentModel
import FirestoreMessages
import FirestoreService
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ListingTests {
    private func fields(_ number: Int) -> [UInt8] { Harness.fields(["n": .integer(Int64(number))]) }

    /// Every page of a listing, each with the names on it.
    private func pages(_ harness: Harness, _ request: ListDocumentsRequest) throws -> [[String]] {
        var request = request
        var pages: [[String]] = []
        repeat {
            let page = try harness.message(.listDocuments, request, as: ListDocumentsResponse.self)
            pages.append(page.documents.map { String($0.name.dropFirst(Harness.root.count + 1)) })
            request.pageToken = page.nextPageToken
        } while !request.pageToken.isEmpty && pages.count < 100
        return pages
    }

    @Test(arguments: [1, 2, 3, 5, 6, 0])
    func `Pages follow each other in name order and end without a token`(_ size: Int32) throws {
        let harness = try Harness()
        try harness.set([
            "c/b": fields(1), "c/a": fields(2), "c/é": fields(3), "c/B": fields(4), "c/__id7__": fields(5),
        ])
        try harness.set(["d/a": fields(9), "c/a/c/z": fields(9)])
        let pages = try pages(harness, ListDocumentsRequest(parent: Harness.root, collectionID: "c", pageSize: size))
        expectEqual(pages.flatMap { $0 }, ["c/__id7__", "c/B", "c/a", "c/b", "c/é"])
        if size > 0 { expect(pages.dropLast().allSatisfy { $0.count == Int(size) }) }
    }

    @Test
    func `The server's page size and byte limit hold whatever the client asks for`() throws {
        var limits = ServiceLimits()
        limits.listPageDocuments = 2
        let harness = try Harness(limits: limits)
        try harness.set(["c/a": fields(1), "c/b": fields(2), "c/c": fields(3)])
        let request = ListDocumentsRequest(parent: Harness.root, collectionID: "c", pageSize: 1_000)
        try expectEqual(pages(harness, request).map(\.count), [2, 1])
        limits.listPageBytes = 1
        let narrow = FirestoreService(
            store: harness.store, limits: limits, log: Log(level: .error) { _ in })
        let call = TestCall(loop: harness.loop, method: .listDocuments)
        narrow.begin(call, request.encodedBytes())
        let page = try ListDocumentsResponse(wireBytes: call.answer.messages.first)
        expectEqual(page.documents.count, 1)
        expect(!page.nextPageToken.isEmpty)
    }

    @Test
    func `Missing documents that have descendants are listed by name when asked for`() throws {
        let harness = try Harness()
        try harness.set(["c/a": fields(1), "c/b/d/x": fields(2), "c/e/d/x/f/y": fields(3), "c/z": fields(4)])
        var request = ListDocumentsRequest(parent: Harness.root, collectionID: "c")
        try expectEqual(pages(harness, request), [["c/a", "c/z"]])
        request.showMissing = true
        request.mask = DocumentMask(paths: [])
        try expectEqual(pages(harness, request), [["c/a", "c/b", "c/e", "c/z"]])
        request.pageSize = 1
        try expectEqual(pages(harness, request), [["c/a"], ["c/b"], ["c/e"], ["c/z"]])
        request.pageSize = 0
        let documents = try harness.message(.listDocuments, request, as: ListDocumentsResponse.self).documents
        expectEqual(documents.map { $0.updateTime == nil }, [false, true, true, false])
        expect(documents.allSatisfy { $0.fields.isEmpty })
        request.orderBy = "n"
        expectEqual(harness.call(.listDocuments, request).status, .invalidArgument)
    }

    @Test(arguments: [0, 1, 2])
    func `An empty collection id lists every collection below the parent`(_ size: Int32) throws {
        let harness = try Harness()
        try harness.set(["c/a": fields(1), "b/x": fields(2), "b/y": fields(3), "c/a/s/t": fields(4)])
        let root = ListDocumentsRequest(parent: Harness.root, collectionID: "", pageSize: size)
        try expectEqual(pages(harness, root).flatMap { $0 }, ["b/x", "b/y", "c/a"])
        let below = ListDocumentsRequest(parent: Harness.name("c/a"), collectionID: "", pageSize: size)
        try expectEqual(pages(harness, below).flatMap { $0 }, ["c/a/s/t"])
    }

    @Test(arguments: [0, 1, 2])
    func `All collections below the parent can be ordered by name`(_ size: Int32) throws {
        let harness = try Harness()
        try harness.set([
            "c/a": fields(1), "b/x": fields(2), "b/y": fields(3), "c/a/s/t": fields(4), "d/q/e/r": fields(5),
        ])
        let request = ListDocumentsRequest(parent: Harness.root, collectionID: "", pageSize: size, orderBy: "__name__")
        try expectEqual(pages(harness, request).flatMap { $0 }, ["b/x", "b/y", "c/a"])
    }

    @Test(arguments: [
        ("n", ["c/b", "c/a", "c/d", "c/c"]), ("n desc", ["c/c", "c/d", "c/a", "c/b"]),
        ("n desc, __name__ asc", ["c/c", "c/a", "c/d", "c/b"]), ("__name__ desc", ["c/d", "c/c", "c/b", "c/a"]),
        (" `n`  asc ", ["c/b", "c/a", "c/d", "c/c"]),
    ])
    func `An order given as text orders the pages, doubles by name`(_ order: String, _ expected: [String]) throws {
        let harness = try Harness()
        try harness.set([
            "c/a": fields(2), "c/b": fields(1), "c/c": fields(3), "c/d": fields(2), "c/none": Harness.fields([:]),
        ])
        let names = expected + (order.contains("__name__ desc") && !order.contains("n desc,") ? [] : [])
        for size: Int32 in [0, 1, 3] {
            let request = ListDocumentsRequest(parent: Harness.root, collectionID: "c", pageSize: size, orderBy: order)
            let all = try pages(harness, request).flatMap { $0 }.filter { $0 != "c/none" }
            expectEqual(all, names, "page size \(size)")
        }
    }

    @Test
    func `A token fits into a URL whatever the values are that pages are ordered by`() throws {
        let harness = try Harness()
        let long = String(repeating: "v", count: 100_000)
        func fields(_ end: String) -> [UInt8] { Harness.fields(["s": .string(long + end)]) }
        try harness.set(["c/a": fields("2"), "c/b": fields("1"), "c/c": fields("3"), "c/d": fields("1")])
        var request = ListDocumentsRequest(parent: Harness.root, collectionID: "c", pageSize: 1, orderBy: "s desc")
        try expectEqual(pages(harness, request), [["c/c"], ["c/a"], ["c/d"], ["c/b"]])
        let first = try harness.message(.listDocuments, request, as: ListDocumentsResponse.self)
        expect(first.nextPageToken.utf8.count < 8_192)
        // The last document of the page has another place by now.
        try harness.set(["c/c": fields("0")])
        request.pageToken = first.nextPageToken
        try expectEqual(pages(harness, request), [["c/a"], ["c/d"], ["c/b"], ["c/c"]])
        // It names no document of that version.
        request.pageToken = String(first.nextPageToken.dropLast(2)) + "7a"
        expectEqual(harness.call(.listDocuments, request).status, .invalidArgument)
    }

    @Test
    func `Listings refuse broken tokens, orders, sizes and parents`() throws {
        let harness = try Harness()
        try harness.set(["c/a": fields(1)])
        let good = ListDocumentsRequest(parent: Harness.root, collectionID: "c")
        let edits: [(inout ListDocumentsRequest) -> Void] = [
            { $0.pageToken = "x" }, { $0.pageToken = "0101" }, { $0.pageToken = "010100" },
            { $0.pageToken = "01010009" }, { $0.pageToken = "0104" }, { $0.pageToken = "0104ffffffffffffffff000163" },
            { $0.pageToken = "0104ffffffffffffffff00016361" },
            { $0.pageToken = "010263" }, { $0.pageToken = "0201000161" }, { $0.pageToken = "010363" },
            { $0.orderBy = "," }, { $0.orderBy = "a b c" }, { $0.orderBy = "a desc desc" }, { $0.orderBy = "a-b" },
            { $0.pageSize = -1 },
            { $0.parent = "projects/p" }, { $0.parent = Harness.name("c") }, { $0.collectionID = "a/b/c" },
            { $0.collectionID = ".." }, { $0.collectionID = "__id7__" }, { $0.orderBy = "__name__, n" },
            {
                $0.collectionID = ""
                $0.orderBy = "n"
            },
            {
                $0.collectionID = ""
                $0.showMissing = true
            },
        ]
        for (index, edit) in edits.enumerated() {
            var request = good
            edit(&request)
            expectEqual(harness.call(.listDocuments, request).status, .invalidArgument, "edit \(index)")
        }
        expect(harness.call(.listDocuments, good).isOK)
    }

    @Test
    func `A listing at a read time shows the past`() throws {
        let harness = try Harness()
        let first = try harness.response(setting: ["c/a": fields(1)])
        try harness.set(["c/b": fields(2)])
        let past = ListDocumentsRequest(
            parent: Harness.root, collectionID: "c", consistency: .readTime(first.commitTime))
        try expectEqual(pages(harness, past), [["c/a"]])
    }

    @Test(arguments: [0, 1, 2, 3])
    func `Collection ids are listed once each, pages and descendants included`(_ size: Int32) throws {
        let harness = try Harness()
        try harness.set(["b/x": fields(1), "a/x": fields(2), "c/x/d/y": fields(3), "c/z": fields(4)])
        var request = ListCollectionIdsRequest(parent: Harness.root, pageSize: size)
        var ids: [String] = []
        repeat {
            let page = try harness.message(.listCollectionIds, request, as: ListCollectionIdsResponse.self)
            ids += page.collectionIDs
            request.pageToken = page.nextPageToken
        } while !request.pageToken.isEmpty
        expectEqual(ids, ["a", "b", "c"])
        let below = ListCollectionIdsRequest(parent: Harness.name("c/x"), pageSize: size)
        try expectEqual(
            harness.message(.listCollectionIds, below, as: ListCollectionIdsResponse.self).collectionIDs, ["d"])
        request.pageToken = "zz"
        expectEqual(harness.call(.listCollectionIds, request).status, .invalidArgument)
    }

    @Test
    func `A token stands for a document of its listing alone`() throws {
        let harness = try Harness()
        // Values that are too long for a token: it has the name of the document.
        let long = String(repeating: "v", count: 2_000)
        func fields(_ end: String) -> [UInt8] { Harness.fields(["s": .string(long + end)]) }
        try harness.set([
            "c/a": fields("1"), "c/b": fields("3"), "secret/a": fields("2"), "secret/b": fields("2"),
            "c/a/secret/z": fields("2"),
        ])
        func request(_ collectionID: String, _ token: String = "") -> ListDocumentsRequest {
            ListDocumentsRequest(
                parent: Harness.root, collectionID: collectionID, pageSize: 1, pageToken: token, orderBy: "s")
        }
        func token(of collectionID: String) throws -> String {
            try harness.message(.listDocuments, request(collectionID), as: ListDocumentsResponse.self).nextPageToken
        }
        let (own, other) = (try token(of: "c"), try token(of: "secret"))
        try expectEqual(pages(harness, request("c", own)), [["c/b"]])
        expectEqual(harness.call(.listDocuments, request("c", other)).status, .invalidArgument)
        // The kind, the version and the id of the collection, then another id than `a`.
        let below = own.dropLast(2) + Hexadecimal.text(Array("a/secret/z".utf8).byteSpan)
        expectEqual(harness.call(.listDocuments, request("c", String(below))).status, .invalidArgument)
    }

    @Test
    func `Other calls have their turn while a listing is sorted`() throws {
        let harness = try Harness()
        var writes = try harness.emptyWrites()
        for number in 0..<5_000 {
            let fields = Harness.fields(["a": .integer(Int64(number % 7)), "b": .integer(Int64(-number))])
            try Harness.name("c/d\(number)").withUTF8Span { try writes.update($0, fields: fields.span.bytes) }
        }
        try harness.commit(writes)
        let request = ListDocumentsRequest(parent: Harness.root, collectionID: "c", pageSize: 2, orderBy: "a, b")
        let call = TestCall(loop: harness.loop, method: .listDocuments)
        harness.service.begin(call, request.encodedBytes())
        expectNil(call.answer.status, "the whole collection was sorted at once")
        expect(harness.loop.run { call.answer.status != nil })
        let page = try ListDocumentsResponse(wireBytes: call.answer.messages.first)
        expectEqual(page.documents.map(\.name), ["c/d4998", "c/d4991"].map(Harness.name))
        expect(!page.nextPageToken.isEmpty)
    }
}
