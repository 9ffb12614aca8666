// The admin API of indexes and fields, call by call, over the socket in the data directory.

import Basics
import Dispatch
import DocumentModel
import DocumentStore
import EventLoops
import FirestoreMessages
import FirestoreService
import NativeProtocol
import Server
import ServiceTestSupport
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct IndexAdminTests {
    private final class Admin: AdminConnection {
        func code(_ method: FirestoreMessages.Method, _ request: some FirestoreMessage) -> StatusCode {
            failure(method, request).code
        }

        /// Waits for the operation's end.
        func result(_ operation: LongRunningOperation) throws -> LongRunningOperation {
            try reply(.waitOperation, WaitOperationRequest(name: operation.name))
        }
    }

    private static let group = "\(Harness.database)/collectionGroups/c"

    private static func index(_ paths: String...) -> AdminIndex {
        AdminIndex(queryScope: .collection, fields: paths.map { AdminIndex.Field(path: $0, mode: .ascending) })
    }

    @Test
    func `An index for searches is created, found and deleted as the API writes it`() throws {
        let admin = try Admin()
        let wanted = AdminIndex(
            queryScope: .collection,
            fields: [
                AdminIndex.Field(path: "menu", mode: .search(text: true, geo: false)),
                AdminIndex.Field(path: "place", mode: .search(text: false, geo: true)),
            ], textLanguage: "de")
        let operation: LongRunningOperation = try admin.reply(
            .createIndex, CreateIndexRequest(parent: Self.group, index: wanted))
        guard case .response(let response) = try admin.result(operation).result else {
            Issue.record("the operation has no response")
            return
        }
        let built = try AdminIndex(wire: response.value.byteSpan)
        expectEqual(built.fields, wanted.fields)
        expectEqual(built.textLanguage, "de")
        expectEqual(built.state, .ready)
        try expectEqual(admin.reply(.getIndex, NamedRequest(name: built.name)), built)
        var again = built
        again.name = ""
        expectEqual(admin.code(.createIndex, CreateIndexRequest(parent: Self.group, index: again)), .alreadyExists)
        expectEqual(admin.code(.deleteIndex, NamedRequest(name: built.name)), .ok)
        expectEqual(admin.code(.getIndex, NamedRequest(name: built.name)), .notFound)

        var both = wanted
        both.fields = [AdminIndex.Field(path: "a", mode: .search(text: true, geo: true))]
        expectEqual(admin.code(.createIndex, CreateIndexRequest(parent: Self.group, index: both)), .invalidArgument)
        for mode in [AdminIndex.Field.Mode.search(text: false, geo: false), .ascending] {
            var mixed = wanted
            mixed.fields.append(AdminIndex.Field(path: "x", mode: mode))
            expectEqual(
                admin.code(.createIndex, CreateIndexRequest(parent: Self.group, index: mixed)), .invalidArgument)
        }
        var unknown = wanted
        unknown.textLanguage = "tlh"
        expectEqual(admin.code(.createIndex, CreateIndexRequest(parent: Self.group, index: unknown)), .invalidArgument)
    }

    @Test
    func `An index is created, found, listed page by page and deleted; its operation is found by name`() throws {
        let admin = try Admin()
        let wanted = [Self.index("a", "b"), Self.index("b", "a"), Self.index("m.`x y`", "a")]
        var names: [String] = []
        for index in wanted {
            let operation: LongRunningOperation = try admin.reply(
                .createIndex, CreateIndexRequest(parent: Self.group, index: index))
            let done = try admin.result(operation)
            guard case .response(let response) = done.result else {
                Issue.record("the operation has no response: \(done)")
                return
            }
            expectEqual(response.typeURL, "type.googleapis.com/google.firestore.admin.v1.Index")
            let built = try AdminIndex(wire: response.value.byteSpan)
            expectEqual(built.state, .ready)
            expectEqual(built.fields, index.fields + [AdminIndex.Field(path: "__name__", mode: .ascending)])
            try expectEqual(admin.reply(.getIndex, NamedRequest(name: built.name)), built)
            names.append(built.name)
            let again = admin.code(.createIndex, CreateIndexRequest(parent: Self.group, index: index))
            expectEqual(again, .alreadyExists)
        }
        var found: [String] = []
        var token = ""
        repeat {
            let page: AdminIndexPage = try admin.reply(
                .listIndexes, AdminListRequest(parent: Self.group, pageSize: 2, pageToken: token))
            expect(page.indexes.count <= 2)
            found += page.indexes.map(\.name)
            token = page.nextPageToken
        } while !token.isEmpty
        expectEqual(found, names.sorted())
        let operations: OperationPage = try admin.reply(
            .listOperations, ListOperationsRequest(name: "\(Harness.database)/operations"))
        expectEqual(operations.operations.count, 3)
        for name in names {
            expectEqual(admin.code(.deleteIndex, NamedRequest(name: name)), .ok)
            expectEqual(admin.code(.getIndex, NamedRequest(name: name)), .notFound)
            expectEqual(admin.code(.deleteIndex, NamedRequest(name: name)), .notFound)
        }
    }

    /// Whether the store may build indexes.
    private final class Permission: Sendable {
        private let value = Atomic(true)

        var isGiven: Bool {
            get { value.load(ordering: .acquiring) }
            set { value.store(newValue, ordering: .releasing) }
        }
    }

    @Test
    func `The build of an index is cancelled; a complete index, a field and an unknown operation are not`() throws {
        let mayBuild = Permission()
        let admin = try Admin {
            $0.store.admitsHousekeeping = { task in task != .indexStep || mayBuild.isGiven }
        }
        func create(_ index: AdminIndex) throws -> LongRunningOperation {
            try admin.reply(.createIndex, CreateIndexRequest(parent: Self.group, index: index))
        }
        let complete = try admin.result(try create(Self.index("a", "b")))
        expectEqual(admin.code(.cancelOperation, NamedRequest(name: complete.name)), .ok)
        try expectEqual(admin.reply(.getOperation, NamedRequest(name: complete.name)), complete)

        mayBuild.isGiven = false
        let building = try create(Self.index("b", "a"))
        expectNil(building.result)
        expectEqual(admin.code(.cancelOperation, NamedRequest(name: building.name)), .ok)
        let cancelled: LongRunningOperation = try admin.reply(.getOperation, NamedRequest(name: building.name))
        guard case .error(let status) = cancelled.result else {
            Issue.record("the operation has no error: \(cancelled)")
            return
        }
        expectEqual(status.code, .cancelled)
        let left: AdminIndexPage = try admin.reply(.listIndexes, AdminListRequest(parent: Self.group))
        expectEqual(left.indexes.count, 1)
        mayBuild.isGiven = true
        try waitUntil("the entries are gone") {
            admin.code(.getOperation, NamedRequest(name: building.name)) == .notFound
        }
        expectEqual(admin.code(.cancelOperation, NamedRequest(name: building.name)), .notFound)
        expectEqual(admin.code(.deleteOperation, NamedRequest(name: building.name)), .notFound)

        let field = AdminField(name: "\(Self.group)/fields/until", ttlConfig: .init())
        let change: LongRunningOperation = try admin.reply(
            .updateField, UpdateFieldRequest(field: field, mask: ["ttl_config"]))
        expectEqual(admin.code(.cancelOperation, NamedRequest(name: change.name)), .unimplemented)
        for name in [change.name, complete.name] {
            expectEqual(admin.code(.deleteOperation, NamedRequest(name: name)), .unimplemented)
        }
    }

    /// A closed store with documents, one of which has the marker.
    private static func prepare(_ configuration: StoreConfiguration) throws {
        let store = try DocumentStore.open(configuration)
        defer { store.close() }
        for start in stride(from: 0, to: 400, by: 100) {
            var writes = WriteList(database: try DatabaseName(Harness.database))
            for number in start..<start + 100 {
                let text = (number == 200 ? marker : "") + String(repeating: "x", count: 1_000)
                let fields = Harness.fields(["a": 1, "b": 2, "s": .string(text)])
                try Harness.name("c/d\(1_000 + number)").withUTF8Span { (name) throws(RequestError) in
                    try writes.update(name, fields: fields.byteSpan)
                }
            }
            let done = DispatchSemaphore(value: 0)
            store.commit(CommitRequest(writes: writes)) { _ in done.signal() }
            done.wait()
        }
        try store.checkpoint()
    }

    private static let marker = "the marker of a document"

    @Test
    func `The operation of a build that cannot continue lasts, and ends when the build does, or can be cancelled`()
        throws
    {
        let damage = Mutex<FileDamage?>(nil)
        let admin = try Admin { configuration in
            do {
                try Self.prepare(configuration.store)
                let found = try FileDamage(of: Self.marker, in: configuration.store.directory + "/runs")
                damage.withLock { $0 = found }
            } catch {
                Issue.record(error)
            }
        }
        func state() throws -> AdminIndex.State? {
            let page: AdminIndexPage = try admin.reply(.listIndexes, AdminListRequest(parent: Self.group))
            return page.indexes.last?.state
        }
        func create(_ paths: String...) throws -> LongRunningOperation {
            let fields = paths.map { AdminIndex.Field(path: $0, mode: .ascending) }
            return try admin.reply(
                .createIndex,
                CreateIndexRequest(parent: Self.group, index: AdminIndex(queryScope: .collection, fields: fields)))
        }
        func present(_ operation: LongRunningOperation) throws -> LongRunningOperation {
            try admin.reply(.getOperation, NamedRequest(name: operation.name))
        }
        let cancelled = try create("b", "a")
        try waitUntil("the build has failed") { try state() == .needsRepair }
        let database = try DatabaseName(Harness.database)
        let listed = try AdminClient.listIndexes(of: database, directory: admin.live.directory.path(of: "data"))
        expect(listed.map(\.state) == ["FAILED"] && listed.first?.failure.contains("/runs/") == true, "\(listed)")
        let lasting = try present(cancelled)
        expectNil(lasting.result)
        let metadata = try #require(lasting.metadata)
        try expectEqual(IndexOperationMetadata(wire: metadata.value.byteSpan).state, .processing)
        expectEqual(admin.code(.cancelOperation, NamedRequest(name: cancelled.name)), .ok)
        try expectNil(state())

        let operation = try create("a", "b")
        try waitUntil("the build has failed") { try state() == .needsRepair }
        try expectNil(present(operation).result)
        try damage.withLock { $0 }?.mend()
        try waitUntil("the build has continued") { try present(operation).result != nil }
        guard case .response = try present(operation).result else {
            Issue.record("the operation has no response")
            return
        }
        try expectEqual(state(), .ready)
    }

    @Test
    func `An index that is created again while the deleted one is being removed is built, and can be cancelled`() throws
    {
        let mayBuild = Permission()
        let admin = try Admin {
            $0.store.admitsHousekeeping = { task in task != .indexStep || mayBuild.isGiven }
        }
        func create() throws -> LongRunningOperation {
            try admin.reply(.createIndex, CreateIndexRequest(parent: Self.group, index: Self.index("a", "b")))
        }
        let first = try admin.result(try create())
        let page: AdminIndexPage = try admin.reply(.listIndexes, AdminListRequest(parent: Self.group))
        let name = try #require(page.indexes.first?.name)
        mayBuild.isGiven = false
        expectEqual(admin.code(.deleteIndex, NamedRequest(name: name)), .ok)
        let second = try create()
        expect(second.name != first.name)
        expectNil(second.result)
        let listed: OperationPage = try admin.reply(
            .listOperations, ListOperationsRequest(name: "\(Harness.database)/operations"))
        expectEqual(listed.operations.map(\.name), [first.name, second.name])
        expectEqual(listed.operations.map { $0.result == nil }, [false, true])
        expectEqual(admin.code(.cancelOperation, NamedRequest(name: second.name)), .ok)
        expectEqual(admin.code(.getIndex, NamedRequest(name: name)), .notFound)
        // Both are being removed.
        let cancelled: OperationPage = try admin.reply(
            .listOperations, ListOperationsRequest(name: "\(Harness.database)/operations"))
        expectEqual(cancelled.operations.map(\.name), [first.name, second.name])
        expect(cancelled.operations.allSatisfy { $0.result != nil })
        mayBuild.isGiven = true
        let third = try admin.result(try create())
        guard case .response = third.result else {
            Issue.record("the operation has no response: \(third)")
            return
        }
    }

    @Test
    func `Each change of a field has its own operation, and one that is done stays so`() throws {
        let mayBuild = Permission()
        let admin = try Admin { configuration in
            do { try Self.prepare(configuration.store) } catch { Issue.record(error) }
            configuration.store.admitsHousekeeping = { task in task != .indexStep || mayBuild.isGiven }
        }
        func update(_ name: String, _ field: AdminField) throws -> LongRunningOperation {
            var field = field
            field.name = "\(Self.group)/fields/\(name)"
            let mask = field.ttlConfig == nil ? "index_config" : "ttl_config"
            return try admin.reply(.updateField, UpdateFieldRequest(field: field, mask: [mask]))
        }
        func present(_ operation: LongRunningOperation) throws -> LongRunningOperation {
            try admin.reply(.getOperation, NamedRequest(name: operation.name))
        }
        let exempt = AdminField(name: "", indexConfig: .init(indexes: []))
        let inherited = AdminField(name: "", indexConfig: .init(indexes: [], usesAncestorConfig: true))
        mayBuild.isGiven = true
        let first = try admin.result(try update("a", exempt))
        expect(first.result != nil)
        mayBuild.isGiven = false
        let second = try update("a", inherited)
        let third = try update("until", AdminField(name: "", ttlConfig: .init()))
        expectEqual(Set([first, second, third].map(\.name)).count, 3)
        try expect(present(first).result != nil)
        try expectNil(present(second).result)
        try expectNil(present(third).result)
        mayBuild.isGiven = true
        for operation in [second, third] { try expect(admin.result(operation).result != nil) }
        let later = second.name.split(separator: "-").dropLast().joined(separator: "-") + "-\(UInt64.max)"
        expectEqual(admin.code(.getOperation, NamedRequest(name: later)), .notFound)
    }

    @Test
    func `A change of one index leaves what was declared before, and other indexes of the database`() throws {
        let admin = try Admin()
        let database = try DatabaseName(Harness.database)
        let data = admin.live.directory.path(of: "data")
        let override = FieldOverrideMessage(collectionGroup: "c", fieldPath: "notes", indexes: [], ttl: false)
        let declared = ApplyIndexesRequest(
            database: Harness.database,
            indexes: [
                IndexMessage(
                    collectionGroup: "d", spansGroup: true,
                    fields: [.init(path: "x", mode: .ascending), .init(path: "y", mode: .contains)])
            ],
            fieldOverrides: [override])
        expectEqual(admin.code(.adminApplyIndexes, declared), .ok)
        expectEqual(admin.code(.createIndex, CreateIndexRequest(parent: Self.group, index: Self.index("a", "b"))), .ok)
        let field = "\(Self.group)/fields/until"
        let expiring = UpdateFieldRequest(field: AdminField(name: field, ttlConfig: .init()), mask: ["ttl_config"])
        _ = try admin.result(admin.reply(.updateField, expiring))
        let listed = try AdminClient.listIndexes(of: database, directory: data).map(\.json)
        expectEqual(listed.count, 4)
        let fields: AdminFieldPage = try admin.reply(.listFields, AdminListRequest(parent: Self.group))
        expectEqual(fields.fields.map(\.name), ["\(Self.group)/fields/notes", field])
        expectEqual(fields.fields.map { $0.indexConfig?.usesAncestorConfig }, [false, true])
        expectEqual(fields.fields[1].ttlConfig?.state, .active)
        // The index by which expired documents are found is the field's, and not one of those over several fields.
        let indexes: AdminIndexPage = try admin.reply(
            .listIndexes, AdminListRequest(parent: "\(Harness.database)/collectionGroups/-"))
        expectEqual(indexes.indexes.count, 2)
    }

    @Test
    func `A field of a group is changed alone where another group's id differs in bytes`() throws {
        let admin = try Admin()
        let groups = ["caf\u{E9}", "cafe\u{301}"].map { "\(Harness.database)/collectionGroups/\($0)" }
        let expiring = AdminField(name: "\(groups[0])/fields/until", ttlConfig: .init())
        _ = try admin.result(admin.reply(.updateField, UpdateFieldRequest(field: expiring, mask: ["ttl_config"])))
        let exempt = AdminField(name: "\(groups[1])/fields/until", indexConfig: .init(indexes: []))
        _ = try admin.result(admin.reply(.updateField, UpdateFieldRequest(field: exempt, mask: ["index_config"])))
        for (number, group) in groups.enumerated() {
            let field: AdminField = try admin.reply(.getField, NamedRequest(name: "\(group)/fields/until"))
            expectEqual(field.ttlConfig != nil, number == 0)
            expectEqual(field.indexConfig?.usesAncestorConfig, number == 0)
            let listed: AdminFieldPage = try admin.reply(.listFields, AdminListRequest(parent: group))
            expectEqual(listed.fields.map { Array($0.name.utf8) }, [Array("\(group)/fields/until".utf8)])
        }
        var names: [[UInt8]] = []
        var token = ""
        repeat {
            let page: AdminFieldPage = try admin.reply(
                .listFields,
                AdminListRequest(parent: "\(Harness.database)/collectionGroups/-", pageSize: 1, pageToken: token))
            names += page.fields.map { Array($0.name.utf8) }
            token = page.nextPageToken
        } while !token.isEmpty
        expectEqual(Set(names), Set(groups.map { Array("\($0)/fields/until".utf8) }))
    }

    @Test
    func `What is not a name, an index or a field is refused, and changes nothing`() throws {
        let admin = try Admin()
        for name in ["", "c", Harness.database, "\(Self.group)/indexes/", "\(Self.group)/other/x", "\(Self.group)/"] {
            expectEqual(admin.code(.getIndex, NamedRequest(name: name)), .invalidArgument, "\(name)")
            expectEqual(admin.code(.getField, NamedRequest(name: name)), .invalidArgument, "\(name)")
        }
        let unknown = ["index-0123456789abcdef", "field-zz", "field-00", "x"]
        for name in unknown.map({ "\(Harness.database)/operations/\($0)" }) {
            expectEqual(admin.code(.getOperation, NamedRequest(name: name)), .notFound, "\(name)")
        }
        var wide = Self.index("a", "b")
        wide.queryScope = .collectionRecursive
        var vague = Self.index("a", "b")
        vague.fields[1].mode = .unspecified
        var flat = Self.index("a", "b")
        flat.fields[1].mode = .vector(0)
        for index in [nil, Self.index("a"), Self.index(), Self.index("a", "b.."), wide, vague, flat] {
            let request = CreateIndexRequest(parent: Self.group, index: index)
            expectEqual(admin.code(.createIndex, request), .invalidArgument, "\(String(describing: index))")
        }
        let name = "\(Self.group)/fields/a"
        let other = AdminField(name: name, indexConfig: .init(indexes: [Self.index("b")]))
        expectEqual(admin.code(.updateField, UpdateFieldRequest(field: other)), .invalidArgument)
        let unmasked = UpdateFieldRequest(field: AdminField(name: name), mask: ["name"])
        expectEqual(admin.code(.updateField, unmasked), .invalidArgument)
        expectEqual(admin.code(.updateField, UpdateFieldRequest(field: nil)), .invalidArgument)
        let listed: AdminIndexPage = try admin.reply(.listIndexes, AdminListRequest(parent: Self.group))
        expect(listed.indexes.isEmpty)
    }
}
