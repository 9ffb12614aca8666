// The last step of a migration: all documents of the source and of the target beside each other, in the order of their
// names. Differences are removed from the target. So the target has the state of the source at one time, whatever the
// changes have not said.

import Basics
import CXXHash
import DocumentModel
import FirestoreMessages
import HearthClient

/// What a comparison has found, by the collections on the paths of the documents.
struct MigrationTotals: Sendable, Equatable {
    struct Collection: Sendable, Equatable {
        var documents = 0
        /// Bytes of the documents' contents in canonical form.
        var bytes = 0
        /// The sum of hashes of all paths with their contents; it does not depend on their order.
        var sum: UInt64 = 0
    }
    private(set) var collections: [String: Collection] = [:]
    /// Documents that the target lacked, had with other contents, and had although the source does not.
    var added = 0
    var changed = 0
    var deleted = 0

    var documents: Int { collections.values.reduce(0) { $0 + $1.documents } }
    var differences: Int { added + changed + deleted }

    mutating func count(_ path: String, _ fields: [UInt8]) {
        let bytes = Array(path.utf8) + [0] + fields
        let sum = XXH3_64bits(bytes, bytes.count)
        add(Collection(documents: 1, bytes: fields.count, sum: sum), to: MigrationNames.collection(of: path).pattern)
    }

    mutating func add(_ other: MigrationTotals) {
        for (name, collection) in other.collections { add(collection, to: name) }
        added += other.added
        changed += other.changed
        deleted += other.deleted
    }

    private mutating func add(_ part: Collection, to name: String) {
        collections[name, default: Collection()].documents += part.documents
        collections[name, default: Collection()].bytes += part.bytes
        collections[name, default: Collection()].sum &+= part.sum
    }
}

/// Compares the parts, several at the same time.
struct MigrationComparison: Sendable {
    let source: MigrationSource
    let names: MigrationNames
    let target: HearthClient
    let targetPatience: Patience
    /// What the source is read at; nil if it cannot read earlier states.
    let time: TimestampValue?
    /// Parts at the same time.
    let parallel: Int

    func run(_ parts: [MigrationState.Part], _ line: ProgressLine) async throws -> MigrationTotals {
        try await withThrowingTaskGroup(of: MigrationTotals.self) { group in
            var (totals, line, next) = (MigrationTotals(), line, 0)
            while next < parts.count || !group.isEmpty {
                if next < parts.count, next < parallel {
                    let part = parts[next]
                    group.addTask { try await compare(part) }
                    next += 1
                } else if let more = try await group.next() {
                    totals.add(more)
                    line.update(documents: totals.documents, bytes: 0, totalBytes: nil)
                    guard next < parts.count else { continue }
                    let part = parts[next]
                    group.addTask { try await compare(part) }
                    next += 1
                }
            }
            line.clear()
            return totals
        }
    }

    private func compare(_ part: MigrationState.Part) async throws -> MigrationTotals {
        func end(_ name: String?) throws -> String? { try name.map { try names.target($0) } }
        var theirs = Side(
            SubtreeReader(
                source.client, source.database, from: part.start, after: nil, before: part.end,
                time.map { .readTime($0) } ?? .latest), names.source, source.patience)
        var ours = Side(
            SubtreeReader(
                target, names.target, from: try end(part.start), after: nil, before: try end(part.end), .latest),
            names.target, targetPatience)
        var writer = TargetWriter(target, names.target, targetPatience)
        var totals = MigrationTotals()
        var (their, our) = (try await theirs.next(), try await ours.next())
        while their != nil || our != nil {
            let order = Self.order(their, our)
            if order > 0, let document = our {
                totals.deleted += 1
                try await writer.delete("\(names.target.documentsRoot)/\(document.path)")
            } else if let document = their {
                let fields = try Self.canonical(try names.fields(document.fields))
                totals.count(document.path, fields)
                let ours = try order == 0 ? our.map { try Self.canonical($0.fields) } : nil
                if ours == nil { totals.added += 1 } else if ours != fields { totals.changed += 1 }
                if ours != fields {
                    try await writer.set("\(names.target.documentsRoot)/\(document.path)", fields: fields)
                }
            }
            if order <= 0 { their = try await theirs.next() }
            if order >= 0 { our = try await ours.next() }
        }
        try await writer.flush()
        return totals
    }

    /// The order of paths.
    private static func order(_ left: String, _ right: String) -> Int {
        left.withUTF8Span { left in right.withUTF8Span { ResourcePath.compare(left, $0) } }
    }

    /// Which of two documents comes first; one that there is comes before none.
    private static func order(_ left: Side.Document?, _ right: Side.Document?) -> Int {
        guard let left else { return right == nil ? 0 : 1 }
        guard let right else { return -1 }
        return order(left.path, right.path)
    }

    /// The one form of equal contents.
    private static func canonical(_ fields: [UInt8]) throws -> [UInt8] {
        if try DocumentValidator.validate(fields: fields.byteSpan).isCanonical { return fields }
        var writer = ByteBuffer(capacity: fields.count)
        try DocumentCanonicalizer.canonicalize(fields: fields.byteSpan, into: &writer)
        return writer.copyBytes()
    }

    /// The documents of one side, one after the other.
    private struct Side {
        struct Document {
            /// Below the documents root.
            var path: String
            var fields: [UInt8]
        }
        private var reader: SubtreeReader
        private let root: String
        private let patience: Patience
        private var page: ArraySlice<NamedDocument> = []
        private var last: String?

        init(_ reader: SubtreeReader, _ database: DatabaseName, _ patience: Patience) {
            self.reader = reader
            self.patience = patience
            root = database.documentsRoot + "/"
        }

        mutating func next() async throws -> Document? {
            if page.isEmpty { page = try await patience.call { try await reader.next() }[...] }
            guard let document = page.popFirst() else { return nil }
            let path = document.name.dropping(prefix: root)
            if let last, MigrationComparison.order(last, path) >= 0 {
                throw CommandFailure("\(patience.side) sent \(path) after \(last), which is not the order of names")
            }
            last = path
            return Document(path: path, fields: document.content.fields)
        }
    }
}
