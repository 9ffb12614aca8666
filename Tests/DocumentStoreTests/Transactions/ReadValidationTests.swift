// Whether what a transaction read still stands: each rule by itself, and random histories against the definition.

import Basics
import DocumentModel
import Storage
import StorageEngines
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore
@testable import StoreFormat

@Suite(.timeLimit(.minutes(20))) struct ReadValidationTests {
    /// Documents in an engine without a store around it, and the ring of their changes.
    private final class Ground {
        let engine: StorageEngine
        private let directory = TemporaryDirectory("validation")
        private let writer: EngineWriter
        private let validation: ReadValidation
        private var changes: RecentChanges
        private(set) var version: UInt64 = 1_000
        /// Every state of every document, newest last; nil is a delete.
        private(set) var history: [String: [(version: UInt64, number: Int64?)]] = [:]

        /// - Parameters:
        ///   - remembered: changes in the ring; beyond them ranges are read again.
        ///   - rescan: documents that such a reading may look at.
        ///   - steps: for all ranges of a transaction.
        init(remembered: Int = 1_000, rescan: Int = 1_000, steps: Int = 1_000_000) throws {
            var options = EngineOptions()
            options.runBytesMax = 1 << 28
            options.memtableBytesMax = 1 << 20
            options.logSegmentBytes = 1 << 20
            options.retentionMicroseconds = 1 << 60
            engine = try StorageEngine.open(directory: directory.path, options: options) { _, _, _, _ in }
            writer = try engine.makeWriter()
            validation = ReadValidation(
                latest: writer.latest, history: try engine.makeReader(), rescanMax: rescan,
                stepsMax: steps)
            changes = RecentChanges(maximum: remembered, since: version)
        }

        static func key(_ path: String) -> [UInt8] {
            var writer = ByteBuffer()
            _ = DocumentKey.write(Array(path.utf8).byteSpan, database: 1, into: &writer)
            return writer.copyBytes()
        }

        /// Commits documents of one number each; nil deletes.
        func commit(_ writes: KeyValuePairs<String, Int64?>) throws {
            version += 10
            changes.beginCommit()
            var batch = MutationBatch()
            for (path, number) in writes {
                let key = Self.key(path)
                if let number {
                    var header = ByteBuffer()
                    StoredRecord.writeHeader(
                        createMicroseconds: nil, path: Array(path.utf8).byteSpan, isCut: false, into: &header)
                    let fields = (["n": .integer(number)] as MapValue).documentBytes
                    batch.put(key: key.byteSpan, value: header.bytes, fields.byteSpan)
                } else {
                    batch.delete(key: key.byteSpan)
                }
                changes.append(key: key.byteSpan, version: version)
                history[path, default: []].append((version, number))
            }
            let record: [UInt8] = [1]
            try writer.stage(
                version: CommitVersion(microseconds: version), record: record.byteSpan, mutations: batch)
            try writer.commitGroup()
        }

        func begin() -> StoreTransaction {
            try! StoreTransaction(
                identifier: TransactionIdentifier(number: 1, nonce: 1), database: try! DatabaseName(project: "p"),
                kind: .optimistic, nowMilliseconds: 0, age: 1, earlierConflicts: [], readsMax: 1_000,
                memory: TransactionMemory(bytesMax: .max))
        }

        /// The transaction reads a document in the state of now.
        func read(_ path: String, _ transaction: StoreTransaction) throws {
            let last = history[path]?.last
            let seen = last?.number == nil ? 0 : last?.version ?? 0
            try transaction.noteRead(key: Self.key(path).byteSpan, versionMicroseconds: seen)
        }

        /// The transaction walks a collection in the state of now, asking for numbers that `matches` holds for.
        func walk(
            _ collection: String, _ transaction: StoreTransaction, matching wanted: (@Sendable (Int64) -> Bool)? = nil
        ) throws {
            let document = Self.key(collection + "/x")
            let prefix = document[..<(DocumentKey.parts(of: document.byteSpan)?.collectionByteCount ?? 0)]
            var filter: DocumentFilter?
            if let wanted {
                filter = { _, fields in
                    guard let map = try? MapValue(documentBytes: fields), case .integer(let number)? = map["n"] else {
                        return false
                    }
                    return wanted(number)
                }
            }
            try transaction.noteRead(
                ReadRange(
                    lower: prefix + [KeyLayout.documentMarker], upper: prefix + [KeyLayout.documentMarker + 1],
                    collectionID: nil, matches: filter, version: CommitVersion(microseconds: version)))
        }

        func conflicts(of transaction: StoreTransaction) throws -> ReadValidation.Conflicts {
            try validation.conflicts(of: transaction, changes: changes)
        }

        func mayCommit(_ transaction: StoreTransaction) throws -> Bool { try conflicts(of: transaction).isEmpty }

        deinit { try? engine.close() }
    }

    @Test
    func `A transaction that read nothing, or what nobody has changed, may commit`() throws {
        let ground = try Ground()
        try ground.commit(["c/a": 1, "c/b": 2])
        let transaction = ground.begin()
        try expect(ground.mayCommit(transaction))
        try ground.read("c/a", transaction)
        try ground.read("c/missing", transaction)
        try ground.walk("d", transaction)
        try ground.commit(["c/b": 3, "e/x": 1])
        try expect(ground.mayCommit(transaction))
    }

    @Test(
        arguments: [
            ("c/a", [("c/a", 2)], false), ("c/a", [("c/a", nil)], false), ("c/new", [("c/new", 1)], false),
            ("c/a", [("c/a", nil), ("c/a", 1)], false), ("c/new", [("c/new", 1), ("c/new", nil)], true),
            ("c/a", [("c/ab", 1), ("c", 1)], true),
        ] as [(String, [(String, Int64?)], Bool)])
    func `A document that was read conflicts when it changes, goes, comes, or comes back as it was`(
        read: String, changes: [(String, Int64?)], mayCommit: Bool
    ) throws {
        let ground = try Ground()
        try ground.commit(["c/a": 1])
        let transaction = ground.begin()
        try ground.read(read, transaction)
        for (path, number) in changes where path.contains("/") { try ground.commit([path: number]) }
        try expectEqual(ground.mayCommit(transaction), mayCommit)
        // The key of the turn that a retry waits for is that of the document.
        let keys = try ground.conflicts(of: transaction).keys
        expectEqual(keys, mayCommit ? [] : [ByteTable.hash(Ground.key(read).byteSpan)])
    }

    @Test(arguments: [1_000, 2])
    func `A walked range conflicts when a document that met the query before or meets it now has changed`(
        remembered: Int
    ) throws {
        let cases: [(String, KeyValuePairs<String, Int64?>, Bool)] = [
            ("a match changes", ["c/a": 6], false), ("a match goes", ["c/a": nil], false),
            ("a match ceases to be one", ["c/a": 1], false), ("a match comes", ["c/new": 9], false),
            ("another becomes a match", ["c/b": 9], false), ("a match is written as it was", ["c/a": 5], false),
            ("another changes", ["c/b": 2], true), ("another goes", ["c/b": nil], true),
            ("another comes", ["c/new": 1], true),
            ("a match comes elsewhere", ["d/new": 9], true), ("a match comes below", ["c/a/e/new": 9], true),
        ]
        for (name, change, mayCommit) in cases {
            let ground = try Ground(remembered: remembered)
            try ground.commit(["c/a": 5, "c/b": 1])
            let transaction = ground.begin()
            try ground.walk("c", transaction, matching: { $0 >= 5 })
            try ground.commit(change)
            // With a small ring these push the change out of it, and the range is read again.
            for number in 0..<6 as Range<Int64> { try ground.commit(["other/\(number)": number]) }
            try expectEqual(ground.mayCommit(transaction), mayCommit, "\(name)")
        }
    }

    @Test
    func `A range without a filter conflicts with any change in it`() throws {
        let ground = try Ground()
        try ground.commit(["c/a": 1])
        let transaction = ground.begin()
        try ground.walk("c", transaction)
        try ground.commit(["b/x": 1, "d/x": 1])
        try expect(ground.mayCommit(transaction))
        try ground.commit(["c/z": 1])
        try expect(!ground.mayCommit(transaction))
    }

    @Test
    func `A range that is too large to be read again is unclear, which permits nothing`() throws {
        let ground = try Ground(remembered: 2, rescan: 10)
        for number in 0..<20 as Range<Int64> { try ground.commit(["c/\(number)": 1]) }
        let transaction = ground.begin()
        try ground.walk("c", transaction, matching: { $0 == 5 })
        for number in 0..<6 as Range<Int64> { try ground.commit(["other/\(number)": number]) }
        let conflicts = try ground.conflicts(of: transaction)
        expect(conflicts.isUndecided && conflicts.keys.isEmpty && !conflicts.isEmpty)
    }

    /// Each change with each range, or with each filter, would be 40,000 steps.
    @Test(arguments: [(false, 0), (true, 400)])
    func `Many ranges and many changes cost what the changed documents in ranges cost`(
        isOneCollection: Bool, steps: Int
    ) throws {
        for steps in [steps, steps - 1] {
            let ground = try Ground(steps: steps)
            let calls = Atomic(0)
            let transaction = ground.begin()
            for number in 0..<200 as Range<Int64> {
                try ground.walk(isOneCollection && number < 2 ? "changed" : "c\(number)", transaction) { _ in
                    calls.add(1, ordering: .relaxed)
                    return false
                }
            }
            for number in 0..<200 as Range<Int64> { try ground.commit(["changed/\(number)": number]) }
            let conflicts = try ground.conflicts(of: transaction)
            expectEqual(conflicts.isUndecided, steps == 399)
            // The retry waits for its turn at the collection, so it meets no further changes.
            expectEqual(conflicts.keys.count, steps == 399 ? 1 : 0)
            expectEqual(calls.load(ordering: .relaxed), isOneCollection ? 2 * (steps == 399 ? 199 : 200) : 0)
        }
    }

    @Test
    func `A document that changes often is judged once, and a collection in conflict no further`() throws {
        let ground = try Ground()
        let calls = Atomic(0)
        let transaction = ground.begin()
        try ground.walk("c", transaction) { number in
            calls.add(1, ordering: .relaxed)
            return number == 100
        }
        for number in 0..<100 as Range<Int64> { try ground.commit(["c/a": number]) }
        try expect(ground.mayCommit(transaction))
        expectEqual(calls.load(ordering: .relaxed), 1)
        for number in 0..<100 as Range<Int64> { try ground.commit(["c/\(number)": 100]) }
        try expectEqual(ground.conflicts(of: transaction).keys.count, 1)
        expectEqual(calls.load(ordering: .relaxed), 2)
    }

    /// Changes are looked at from the newest one on. The last step is at one that does not matter.
    @Test(arguments: [false, true])
    func `A conflict that comes after the last step is not passed over`(isWalkedAfter: Bool) throws {
        let ground = try Ground(steps: 3)
        let transaction = ground.begin()
        try ground.walk("a", transaction, matching: { $0 == 100 })
        try ground.commit(["a/conflict": 100])
        for number in 0..<4 as Range<Int64> { try ground.commit([isWalkedAfter ? "b/x" : "a/x": number]) }
        if isWalkedAfter { try ground.walk("b", transaction, matching: { $0 == 100 }) }
        try expect(ground.conflicts(of: transaction).isUndecided)
        try expect(!ground.mayCommit(transaction))
    }

    @Test
    func `All ranges that are read again have one bound together`() throws {
        let ground = try Ground(remembered: 2, rescan: 100, steps: 400)
        for number in 0..<40 as Range<Int64> { try ground.commit(["a/\(number)": 1, "b/\(number)": 1]) }
        let transactions = [ground.begin(), ground.begin()]
        for transaction in transactions { try ground.walk("a", transaction, matching: { $0 == 5 }) }
        try ground.walk("b", transactions[1], matching: { $0 == 5 })
        for number in 0..<6 as Range<Int64> { try ground.commit(["other/\(number)": number]) }
        try expect(ground.mayCommit(transactions[0]))
        try expect(ground.conflicts(of: transactions[1]).isUndecided)
    }

    @Test(arguments: [1, 2, 3])
    func `Ranges are found by the keys in them`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func key() -> [UInt8] { [UInt8(random.below(12)), UInt8(random.below(12))] }
        for _ in 0..<300 {
            let ranges = (0..<random.below(20)).map { _ in
                ReadRange(
                    lower: key(), upper: key(), collectionID: nil, matches: nil,
                    version: CommitVersion(microseconds: UInt64(random.below(5))))
            }
            let tree = RangeTree(ranges)
            let (key, version) = (key(), UInt64(random.below(5)))
            let containing = ranges.filter {
                !key.lexicographicallyPrecedes($0.lower) && key.lexicographicallyPrecedes($0.upper)
            }
            let expected = containing.filter { $0.version.microseconds < version }
            var found: [ReadRange] = []
            var steps = 1_000
            tree.append(containing: key.byteSpan, before: version, steps: &steps, to: &found)
            func names(_ ranges: [ReadRange]) -> [String] {
                ranges.map { "\($0.lower) \($0.upper) \($0.version.microseconds)" }.sorted()
            }
            expectEqual(names(found), names(expected), "seed \(seed)")
            expectEqual(1_000 - steps, containing.count)
        }
    }

    @Test
    func `Conflicts are remembered up to a bound, each key once`() {
        var conflicts = ReadValidation.Conflicts()
        for key in 0..<200 as Range<UInt64> {
            conflicts.add(key)
            conflicts.add(key)
        }
        expect(conflicts.keys == Array(0..<UInt64(ReadValidation.Conflicts.keysMax)) && conflicts.isFull)
    }

    @Test(arguments: [1_000, 4], [1, 2, 3])
    func `The verdict is that of the definition, by the ring and by reading again`(remembered: Int, seed: UInt64) throws
    {
        var random = SeededGenerator(seed: seed)
        let ground = try Ground(remembered: remembered)
        let paths = ["a/x", "a/y", "a/z", "b/x", "b/y", "a/x/b/y"]
        func change() throws { try ground.commit([random.pick(paths): random.oneIn(4) ? nil : Int64(random.below(3))]) }
        for _ in 0..<10 { try change() }
        for round in 0..<150 {
            let transaction = ground.begin()
            let start = ground.version
            let documents = paths.filter { _ in random.oneIn(5) }
            let walks = ["a", "b"].filter { _ in random.oneIn(3) }.map { ($0, Int64(random.below(3))) }
            for path in documents { try ground.read(path, transaction) }
            for (collection, number) in walks { try ground.walk(collection, transaction, matching: { $0 == number }) }
            for _ in 0..<random.below(8) { try change() }

            func state(_ path: String, at version: UInt64) -> (version: UInt64, number: Int64?)? {
                ground.history[path]?.last { $0.version <= version }
            }
            let staleDocuments = documents.contains { path in
                let (before, now) = (state(path, at: start), state(path, at: .max))
                return (before?.number == nil ? 0 : before?.version) != (now?.number == nil ? 0 : now?.version)
            }
            let staleWalks = walks.contains { collection, number in
                paths.contains { path in
                    guard path.hasPrefix(collection + "/"), path.filter({ $0 == "/" }).count == 1 else { return false }
                    let (before, now) = (state(path, at: start), state(path, at: .max))
                    return now?.version != before?.version && (before?.number == number || now?.number == number)
                }
            }
            try expectEqual(
                ground.mayCommit(transaction), !(staleDocuments || staleWalks), "seed \(seed), round \(round)")
        }
    }
}
