// Documents that several writes of one commit go to.
//
// Each write sees what the writes before it made of the document, but only the last state is logged, staged and
// indexed: the cost of a commit in log and memory is that of the documents it changes, however many writes change them.

internal import Basics
internal import DocumentModel
internal import Storage
internal import WriteEngine

/// The documents written repeatedly, as the writes so far left them. Belongs to the commit thread.
struct RepeatedWrites: ~Copyable {
    /// A document that the commit has changed.
    struct State {
        var exists: Bool
        /// When it came into being; meaningful if it exists.
        var createMicroseconds: UInt64
        /// Canonical field entries.
        var fields: [UInt8]

        /// The document as the next write of the commit sees it; nil if it does not exist.
        @_lifetime(borrow self)
        func view(at version: CommitVersion) -> StoredDocumentView? {
            guard exists else { return nil }
            return StoredDocumentView(
                createMicroseconds: createMicroseconds, updateMicroseconds: version.microseconds,
                fields: fields.byteSpan)
        }
    }

    private struct Document {
        /// The position of the last write to it.
        var lastWrite: Int
        /// Nil while no write has changed it, and once it is staged.
        var state: State?
    }

    /// Paths of the documents with the positions of their first writes.
    private var firstWrites = ByteTable()
    /// For each write the position of its document in `documents`, or -1; empty when no document is written twice.
    private var documentOfWrite: [Int] = []
    private var documents: [Document] = []

    /// Before this position masked updates are applied one by one.
    private var mergesFrom = 0

    /// Bytes of fields held.
    private(set) var byteCount = 0

    /// Looks through the writes of a commit.
    /// - Returns: whether several go to one document.
    mutating func begin(_ list: borrowing WriteList) -> Bool {
        forget()
        firstWrites.removeAll()
        for position in 0..<list.count {
            let path = list.path(of: list.writes[position])
            guard let first = firstWrites.insert(path, hash: ByteTable.hash(path), value: position) else { continue }
            note(position, firstWrite: first, writeCount: list.count)
        }
        return !documents.isEmpty
    }

    /// Forgets the commit before.
    mutating func forget() {
        if documents.isEmpty { return }
        documentOfWrite.removeAll()
        documents.removeAll()
        mergesFrom = 0
        byteCount = 0
    }

    private mutating func note(_ position: Int, firstWrite: Int, writeCount: Int) {
        if documentOfWrite.isEmpty { documentOfWrite = [Int](repeating: -1, count: writeCount) }
        if documentOfWrite[firstWrite] < 0 {
            documentOfWrite[firstWrite] = documents.count
            documents.append(Document(lastWrite: position))
        }
        documentOfWrite[position] = documentOfWrite[firstWrite]
        documents[documentOfWrite[position]].lastWrite = position
    }

    /// The document of a write, if other writes go to it too.
    func document(ofWrite position: Int) -> Int? {
        if documentOfWrite.isEmpty || documentOfWrite[position] < 0 { return nil }
        return documentOfWrite[position]
    }

    func isLast(_ position: Int, of document: Int) -> Bool { documents[document].lastWrite == position }

    /// What the writes so far made of the document; nil if they have not changed it.
    func state(of document: Int) -> State? { documents[document].state }

    /// The masked updates from this position on that go to one document which the commit has changed already; nil if
    /// there are not several in a row. Each of them answers with the time of the commit, whether it changes anything or
    /// not.
    func maskedRun(from position: Int, of list: borrowing WriteList) -> Range<Int>? {
        guard position >= mergesFrom, let document = document(ofWrite: position),
            documents[document].state?.exists == true
        else { return nil }
        var end = position
        while end < list.count, documentOfWrite[end] == document, list.writes[end].isMaskedUpdate { end += 1 }
        return end - position > 1 ? position..<end : nil
    }

    /// The run turned out to be none that can be merged.
    mutating func applyOneByOne(_ run: Range<Int>) { mergesFrom = run.upperBound }

    /// Takes note of what a run of masked updates has made of the document.
    mutating func set(_ document: Int, fields: RawSpan) {
        guard let state = documents[document].state else { return }
        byteCount += fields.byteCount - state.fields.count
        documents[document].state?.fields = [UInt8](copying: fields)
    }

    /// Takes note of what a write has made of the document.
    ///
    /// - Parameters:
    ///   - outcome: a put or a delete.
    ///   - fields: the fields of a put.
    mutating func set(_ document: Int, to outcome: WriteOutcome, fields: RawSpan) {
        let exists = outcome.effect == .put
        byteCount -= documents[document].state?.fields.count ?? 0
        documents[document].state = State(
            exists: exists, createMicroseconds: outcome.createMicroseconds,
            fields: exists ? [UInt8](copying: fields) : [])
        byteCount += documents[document].state?.fields.count ?? 0
    }

    /// Hands over the document's state, to be staged.
    mutating func takeState(of document: Int) -> State? {
        defer { documents[document].state = nil }
        byteCount -= documents[document].state?.fields.count ?? 0
        return documents[document].state
    }
}
