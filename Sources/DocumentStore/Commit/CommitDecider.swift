// Decides the writes of a commit: for each write, whether its preconditions hold and what becomes of its document.
//
// A decision reads the newest state, staged commits and earlier writes of the same commit included, and adds one item
// to the commit's draft; all else follows from the item (`CommitApplier`). A document that several writes of a commit
// change has one item, added at its last write (`RepeatedWrites`).
//
// The buffers are in two groups, `tools` and `repeats`, and the draft is a third, because spans of one are written into
// another: the compiler keeps separate variables apart, but not two properties of `self`.

internal import Basics
internal import DocumentModel
internal import Storage
internal import StorageEngines
internal import WriteEngine

/// Decides commits, one after the other, in buffers that are kept. Belongs to the commit thread.
struct CommitDecider: ~Copyable {
    private var tools = DecisionContext()
    private var repeats = RepeatedWrites()
    private let latest: LatestReader
    private let workMax: Int

    /// - Parameters:
    ///   - latest: the newest state.
    ///   - workMax: bytes of documents that one commit may read and write.
    init(latest: LatestReader, workMax: Int) {
        self.latest = latest
        self.workMax = workMax
    }

    /// Starts a commit.
    mutating func begin() {
        tools.application.budget = WorkBudget(bytes: workMax)
        repeats.forget()
    }

    /// Finds the documents that several writes of the list change. To be called once after `begin` for a list in
    /// which there may be any.
    /// - Returns: whether there are any.
    mutating func findRepeats(in list: borrowing WriteList) -> Bool { repeats.begin(list) }

    /// Decides the write at a position of the list, after all writes before it.
    ///
    /// - Throws: what the write's preconditions and rules say, or that the commit is too much work; the draft is as
    ///   before the call then, unless it says that it is broken.
    mutating func decide(
        _ position: Int, of list: borrowing WriteList, into draft: inout CommitDraft
    ) throws(RequestError) -> WriteResult {
        try draft.checkRoom(for: repeats.byteCount)
        let write = list.writes[position]
        if let document = repeats.document(ofWrite: position) {
            return try CommitDecider.decide(
                write, of: list, on: document, isLast: repeats.isLast(position, of: document), latest, &tools,
                &repeats, into: &draft)
        }
        return try CommitDecider.decide(write, of: list, latest, &tools, into: &draft)
    }

    /// Decides the masked updates of one document that begin at a position of the list, in one pass, if there are
    /// several.
    /// - Returns: the results of the writes decided; empty if there is no such run.
    mutating func decideRun(
        from position: Int, of list: borrowing WriteList, into draft: inout CommitDraft
    ) throws(RequestError) -> [WriteResult] {
        guard let run = repeats.maskedRun(from: position, of: list),
            let document = repeats.document(ofWrite: position), let state = repeats.state(of: document)
        else { return [] }
        try draft.checkRoom(for: repeats.byteCount)
        guard try tools.application.merge(run, of: list, to: state.fields.byteSpan) else {
            repeats.applyOneByOne(run)
            return []
        }
        CommitDecider.keep(tools, as: document, in: &repeats)
        if repeats.isLast(run.upperBound - 1, of: document), let state = repeats.takeState(of: document) {
            let path = list.path(of: list.writes[position])
            tools.location.locate(path, database: draft.database)
            try CommitDecider.add(state, path, latest, &tools, into: &draft)
        }
        return [WriteResult](
            repeating: WriteResult(updateMicroseconds: draft.version.microseconds), count: run.count)
    }

    private static func keep(_ tools: borrowing DecisionContext, as document: Int, in repeats: inout RepeatedWrites) {
        repeats.set(document, fields: tools.application.mergedFields)
    }

    /// Decides the only write to a document.
    private static func decide(
        _ write: Write, of list: borrowing WriteList, _ latest: LatestReader, _ tools: inout DecisionContext,
        into draft: inout CommitDraft
    ) throws(RequestError) -> WriteResult {
        let path = list.path(of: write)
        tools.location.locate(path, database: draft.database)
        try tools.readPrior(path, latest)
        let outcome = try apply(write, of: list, to: tools.prior, at: draft.version, with: &tools.application)
        switch outcome.effect {
        case .none: break
        case .put:
            let item = LogItem(
                put: path, fields: tools.application.newFields(of: write, in: list),
                createMicroseconds: outcome.createMicroseconds, isNew: !tools.prior.exists)
            try draft.add(item, at: tools.location, replacing: tools.prior)
        case .delete: try draft.add(LogItem(deleted: path), at: tools.location, replacing: tools.prior)
        }
        return outcome.result
    }

    /// Decides one of several writes to a document; the last one adds what all of them have made of it.
    private static func decide(
        _ write: Write, of list: borrowing WriteList, on document: Int, isLast: Bool, _ latest: LatestReader,
        _ tools: inout DecisionContext, _ repeats: inout RepeatedWrites, into draft: inout CommitDraft
    ) throws(RequestError) -> WriteResult {
        let path = list.path(of: write)
        tools.location.locate(path, database: draft.database)
        let outcome: WriteOutcome
        if let state = repeats.state(of: document) {
            outcome = try tools.application.apply(
                write, of: list, to: state.view(at: draft.version), commitMicroseconds: draft.version.microseconds)
        } else {
            try tools.readPrior(path, latest)
            outcome = try apply(write, of: list, to: tools.prior, at: draft.version, with: &tools.application)
        }
        if outcome.effect != .none {
            repeats.set(document, to: outcome, fields: tools.application.newFields(of: write, in: list))
        }
        if isLast, let state = repeats.takeState(of: document) {
            try add(state, path, latest, &tools, into: &draft)
        }
        return outcome.result
    }

    private static func apply(
        _ write: Write, of list: borrowing WriteList, to prior: borrowing PriorDocument, at version: CommitVersion,
        with application: inout WriteApplication
    ) throws(RequestError) -> WriteOutcome {
        try application.apply(write, of: list, to: prior.view, commitMicroseconds: version.microseconds)
    }

    /// Adds the last state of a document that several writes changed. One that was missing before and is missing
    /// again has not changed.
    private static func add(
        _ state: RepeatedWrites.State, _ path: RawSpan, _ latest: LatestReader, _ tools: inout DecisionContext,
        into draft: inout CommitDraft
    ) throws(RequestError) {
        try tools.readPrior(path, latest)
        if state.exists {
            let item = LogItem(
                put: path, fields: state.fields.byteSpan, createMicroseconds: state.createMicroseconds,
                isNew: !tools.prior.exists)
            try draft.add(item, at: tools.location, replacing: tools.prior)
        } else if tools.prior.exists {
            try draft.add(LogItem(deleted: path), at: tools.location, replacing: tools.prior)
        }
    }
}

/// What deciding a write needs.
private struct DecisionContext: ~Copyable {
    var application = WriteApplication()
    /// Where the document is that is being written.
    var location = DocumentLocation()
    /// The document before the commit.
    var prior = PriorDocument()

    /// Reads the document at `location` into `prior`.
    mutating func readPrior(_ path: RawSpan, _ latest: LatestReader) throws(RequestError) {
        do throws(StorageError) {
            try prior.read(location, latest: latest)
        } catch {
            throw RequestError(error, document: path)
        }
    }
}
