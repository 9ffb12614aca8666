// Running a search over an index, step by step.
//
//     plan      chooses the index
//     load      reads the entries of each word into memory
//     match     finds the documents that have the words, in the order of names, and their scores
//     fetch     reads the documents
//
// If only the best documents are wanted, all that match are found before the first one is read. Nothing of the storage
// is held between two steps.

package import Basics
internal import DocumentModel
internal import Indexing
internal import StoreFormat
package import TextAnalysis

/// What a search asks for.
package struct SearchSettings: Sendable {
    /// Nil for a search by place alone.
    package var text: TextQuery?
    /// The language of the index; nil takes any.
    package var language: TextLanguage?
    /// Where documents lie that may match; the search may give out others. It is used if there is no text.
    package var area: GeoArea?
    /// Documents after which no more are looked for; nil finds all.
    package var depth: Int?
    /// The number of documents wanted that have the highest scores; nil gives out all in the order of names.
    package var best: Int?
    /// Bytes of entries and matches that may be held.
    package var memoryBytes = 64 << 20
    /// How much is done before `SearchExecution.next` returns, in rows. A step has to look at each part of a text query
    /// once at least, of which there are at most half as many as the query has bytes.
    package var rowsPerStep = 1_024

    package init() {}
}

/// A search being executed. Confined to one thread at a time.
package struct SearchExecution: Sendable {
    /// How a step ended.
    package enum Progress: Sendable {
        /// There may be more documents.
        case paused
        case finished
        /// No index serves the search by place: all documents of the scope have to be looked at.
        case scans
    }

    /// A document that matches.
    private struct Match: Sendable {
        let document: [UInt8]
        let score: Double
    }

    private enum Phase: Sendable {
        case planning
        case loading
        case matching([UInt8])
        case fetching
        case finished
        case scanning
    }

    private let plan: QueryPlan
    private let settings: SearchSettings
    private var phase = Phase.planning
    private var index: DeclaredIndex?
    private var tree: SearchTree?
    private var ranges: [[PostingRange]] = []
    private var lists: [PostingList] = []
    /// The range that is being read: the leaf, the range of it, where the rest begins.
    private var place: (leaf: Int, range: Int, key: [UInt8]?) = (0, 0, nil)
    private var matching: SearchMatching?
    private var matches: [Match] = []
    private var nextMatch = 0
    private var found = 0
    private var isEnded = false
    private var work = StepWork()
    /// Bytes of entries and matches that are held until the search is finished.
    package private(set) var heldBytes = 0

    /// Entries that count as a document in a step's budget.
    private static let entriesPerDocument = 2
    /// Documents, and comparisons, that count as a row.
    private static let documentsPerRow = 4
    private static let comparisonsPerRow = 8
    /// The most entries that are sorted: those of words with the same first letters, and of places.
    static let sortedEntriesMax = 65_536
    /// The largest number of best documents that is looked for before documents are read.
    package static let bestMax = 4_096

    /// - Parameter plan: all documents of one collection or group, in any order.
    package init(_ plan: QueryPlan, _ settings: SearchSettings) {
        self.plan = plan
        self.settings = settings
    }

    /// No index serves the search by place.
    package var isScan: Bool {
        if case .scanning = phase { true } else { false }
    }

    /// Index entries and documents looked at so far.
    package var scannedEntries: Int { work.entries }
    package var scannedDocuments: Int { work.documents }

    /// The search as explain shows it.
    package var line: String {
        guard let index else { return "Search \(plan.matcher.scope)" }
        return "Search \(plan.matcher.scope) by \(index.shape.properties)"
    }

    // MARK: Steps

    /// Gives out the next documents, with their scores.
    ///
    /// - Parameter source: the same state in every call.
    /// - Throws: `FAILED_PRECONDITION` if there is no index, with its definition; `RESOURCE_EXHAUSTED` beyond the
    ///   memory or the entries that are sorted; `INVALID_ARGUMENT` for a text query without words.
    package mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, emit: (borrowing QueryRow, Double) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Progress {
        work.budget = settings.rowsPerStep * Self.documentsPerRow
        try choose(source)
        if case .loading = phase { try load(source) }
        if case .matching(let target) = phase { try match(from: target) }
        if case .scanning = phase { return .scans }
        if nextMatch < matches.count, settings.best == nil || isEnded { try fetch(source, emit) }
        if isEnded, nextMatch == matches.count { phase = .finished }
        if case .finished = phase {
            matching = nil
            matches = []
            heldBytes = 0
            return .finished
        }
        return .paused
    }

    /// Chooses the index, unless that is done.
    package mutating func choose<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source
    ) throws(RequestError) {
        guard case .planning = phase else { return }
        let candidates = try suitableIndexes(source)
        guard let index = candidates.first, let search = index.shape.search else {
            if settings.text != nil { throw missingIndex }
            phase = .scanning
            return
        }
        if source.notesReads { try plan.noteReads(in: source) }
        self.index = index
        if let text = settings.text {
            tree = try SearchTree(text, search.language)
        } else if let area = settings.area {
            tree = SearchTree(area)
        }
        let collection = try collectionNumber(source)
        guard let tree, let collection else {
            phase = .finished
            isEnded = true
            return
        }
        ranges = tree.leaves.map { PostingRange.ranges(of: $0, in: index, collection: collection) }
        lists = ranges.map { _ in PostingList() }
        phase = .loading
    }

    // MARK: Planning

    /// The indexes that can serve the search, in the order in which they were made.
    private func suitableIndexes<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source
    ) throws(RequestError) -> [DeclaredIndex] {
        let isGroup: Bool
        switch plan.matcher.scope {
        case .collection: isGroup = false
        case .descendants(let parent, let id) where id != nil:
            isGroup = true
            // The paths of all documents below such a parent are cut in keys.
            if parent.count > KeyLayout.plainBytesMax / 2 {
                throw RequestError(
                    .unimplemented,
                    "A search below a document with a path of more than \(KeyLayout.plainBytesMax / 2) bytes "
                        + "is not implemented.")
            }
        case .children, .descendants:
            throw .invalidArgument("A search needs a collection or a collection group.")
        }
        return source.searchIndexes(of: plan.matcher.scope.collectionID).filter { index in
            guard let search = index.shape.search, index.shape.isGroup == isGroup else { return false }
            if settings.text == nil { return settings.area.map { search.points.contains($0.field) } ?? false }
            return !search.texts.isEmpty && (settings.language.map { $0 == search.language } ?? true)
        }
    }

    private var missingIndex: RequestError {
        let scope = plan.matcher.scope
        let shape = IndexShape(
            collectionID: String(decoding: scope.collectionID, as: UTF8.self), isGroup: scope.isOfCollections,
            parts: [],
            search: IndexShape.SearchPart(
                texts: [FieldPath(fieldName: "FIELD")], language: settings.language ?? .english))
        return RequestError(
            .failedPrecondition,
            "The search requires a text index"
                + (settings.language.map { " of the language \($0.code)" } ?? "")
                + " that is built. Add this to firestore.indexes.json, with the fields to be searched: \(shape.json)")
    }

    /// The number of the collection; 0 for a group, nil for a collection that never had a document.
    private func collectionNumber<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source
    ) throws(RequestError) -> UInt64? {
        guard case .collection(let path) = plan.matcher.scope else { return 0 }
        return try source.indexedCollection(path)?.number
    }

    // MARK: Loading

    private mutating func load<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source
    ) throws(RequestError) {
        while place.leaf < lists.count {
            guard place.range < ranges[place.leaf].count else {
                if isSorted(place.leaf), !lists[place.leaf].sort(&work.budget) { return }
                place = (place.leaf + 1, 0, nil)
                continue
            }
            let range = ranges[place.leaf][place.range]
            try read(range, source)
            if case .scanning = phase { return }
            if place.key != nil { return }
            place.range += 1
        }
        try prepareMatching(source)
    }

    /// Whether the entries of a leaf are not read in the order of documents.
    private func isSorted(_ leaf: Int) -> Bool { ranges[leaf].count > 1 || tree?.leaves[leaf].isOfPlaces == true }

    /// Reads entries of a range until the step's budget is spent.
    private mutating func read<Source: QuerySource & ~Copyable>(
        _ range: PostingRange, _ source: borrowing Source
    ) throws(RequestError) {
        let isSorted = isSorted(place.leaf)
        let start = place.key ?? range.lower
        // Where the rest begins if the source has to be waited for, or if the budget is spent.
        var rest = ByteBuffer(capacity: 128)
        rest.append(start)
        var isRead = false
        defer { place.key = isRead ? nil : rest.copyBytes() }
        var cursor = try source.cursor(from: start.byteSpan, to: range.upper.byteSpan, .ascending)
        while try cursor.next() {
            rest.reset()
            rest.append(cursor.key)
            if work.budget <= 0 { return }
            work.entries += 1
            if work.entries % Self.entriesPerDocument == 0 { work.budget -= 1 }
            guard let documentStart = range.documentStart(in: cursor.key) else { throw .damagedEntry }
            if range.onlyItself, !SearchExecution.occursItself(cursor.value) {
                rest.append(byte: 0)
                continue
            }
            // A word may occur often in a large document.
            work.budget -= cursor.value.byteCount >> 9
            try hold(cursor.key.byteCount - documentStart + cursor.value.byteCount + PostingList.entryBytes)
            if isSorted, lists[place.leaf].count >= Self.sortedEntriesMax { return try refuseToSort() }
            lists[place.leaf].append(
                cursor.key.extracting(documentStart..<cursor.key.byteCount), onlyItself: range.onlyItself, cursor.value)
            // The smallest key after this one.
            rest.append(byte: 0)
        }
        isRead = true
    }

    private mutating func hold(_ bytes: Int) throws(RequestError) {
        heldBytes += bytes
        if heldBytes > settings.memoryBytes {
            throw RequestError(
                .resourceExhausted,
                "The stage search of the pipeline needs more than the \(settings.memoryBytes) bytes "
                    + "that a pipeline may hold.")
        }
    }

    private mutating func refuseToSort() throws(RequestError) {
        // Without an index a search by place looks at all documents.
        if settings.text == nil { return phase = .scanning }
        throw RequestError(
            .resourceExhausted,
            "The beginning of a word in the text query matches more than \(Self.sortedEntriesMax) entries.")
    }

    /// Whether the word is its stem in some place.
    private static func occursItself(_ value: RawSpan) -> Bool {
        guard var posting = SearchPosting(value) else { return false }
        while let field = posting.next(onlyItself: true) {
            if field.count > 0 { return true }
        }
        return false
    }

    private mutating func prepareMatching<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source
    ) throws(RequestError) {
        guard let tree, let index, let search = index.shape.search else { return }
        var key = ByteBuffer(capacity: 32)
        SearchKey.begin(
            .statistics, of: index, collection: try collectionNumber(source) ?? 0, into: &key)
        var counts = SearchCounts(fields: search.texts.count)
        if let stored = try source.value(forKey: key.bytes) {
            guard let read = SearchCounts(stored.bytes, fields: search.texts.count) else { throw .damagedEntry }
            counts = read
        }
        matching = SearchMatching(tree, lists, counts)
        lists = []
        phase = .matching([])
    }

    // MARK: Matching

    private mutating func match(from target: [UInt8]) throws(RequestError) {
        guard var matching else { return }
        self.matching = nil
        defer { self.matching = matching }
        matching.fuel = settings.rowsPerStep * Self.comparisonsPerRow
        var target = target
        if settings.depth == 0 { isEnded = true }
        while matching.fuel > 0, !isEnded {
            switch matching.next(from: target) {
            case .nothing: isEnded = true
            case .paused(let place):
                target = place
                matching.fuel = 0
            case .document(let document):
                target = document + [0]
                if isInScope(document) {
                    matches.append(Match(document: document, score: matching.score(of: document)))
                    found += 1
                    try hold(document.count + MemoryLayout<Match>.size)
                }
                if let depth = settings.depth, found >= depth { isEnded = true }
                if let best = settings.best, matches.count >= 2 * best + 256 { keepBest(best) }
                matching.fuel -= 4
            }
        }
        if isEnded, let best = settings.best { keepBest(best) }
        phase = isEnded ? .fetching : .matching(target)
    }

    /// Keeps the documents with the highest scores; of equal ones the first in the order of names.
    private mutating func keepBest(_ best: Int) {
        matches.sort { left, right in
            if left.score != right.score { return left.score > right.score }
            return left.document.byteSpan.compareBytes(right.document.byteSpan) < 0
        }
        if matches.count > best { matches.removeLast(matches.count - best) }
    }

    /// Whether a document of a group lies below the document to which the search is restricted.
    private func isInScope(_ document: [UInt8]) -> Bool {
        guard case .descendants(let parent, _) = plan.matcher.scope, !parent.isEmpty else { return true }
        var segments = ByteBuffer(capacity: 256)
        segments.appendPathSegments(parent.byteSpan)
        return document.byteSpan.startsWith(segments.bytes)
    }

    // MARK: Fetching

    private mutating func fetch<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, _ emit: (borrowing QueryRow, Double) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        var reader = DocumentReader(plan.matcher.scope, database: source.database)
        var isFull = false
        var locked: [[UInt8]] = []
        defer { if source.locksDocuments { source.lock(locked) } }
        while nextMatch < matches.count, !isFull {
            let match = matches[nextMatch]
            let key = try documentKey(match.document, database: source.database)
            let control = try reader.read(key: key, source) { (row) throws(RequestError) in
                if !work.countDocument(byteCount: row.fields.byteCount) { isFull = true }
                if source.locksDocuments { locked.append([UInt8](copying: row.path)) }
                return try emit(row, match.score)
            }
            // A document that has to be waited for is read again.
            nextMatch += 1
            if control == .full { isFull = true }
        }
        if settings.best == nil, nextMatch == matches.count {
            matches.removeAll(keepingCapacity: true)
            nextMatch = 0
        }
    }

    /// The key of a document that an entry stands for.
    private func documentKey(_ document: [UInt8], database: UInt32) throws(RequestError) -> [UInt8] {
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        if case .collection(let path) = plan.matcher.scope {
            DocumentKey.writeCollection(path.byteSpan, database: database, into: &key)
            key.append(byte: KeyLayout.documentMarker)
            key.append(document)
            return key.copyBytes()
        }
        if let cut = matching?.documentKey(of: document), !cut.isEmpty { return cut }
        DocumentKey.writeSubtree([UInt8]().byteSpan, database: database, into: &key)
        // A terminator follows the path.
        guard IndexKey.appendDocument(atPath: document.byteSpan.extracting(0..<(document.count - 1)), into: &key) else {
            throw .damagedEntry
        }
        return key.copyBytes()
    }
}

extension SearchTree.Leaf {
    fileprivate var isOfPlaces: Bool {
        if case .places = self { true } else { false }
    }
}
