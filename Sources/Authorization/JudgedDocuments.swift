internal import Basics
internal import DocumentModel
internal import DocumentStore
internal import FirestoreService
internal import SecurityRules

/// The documents that the rules for writes read, as of one version, each read once. Confined to its loop.
final class JudgedDocuments: DocumentAccess {
    /// A document in the state before the commit.
    struct Stored {
        let fields: [UInt8]
        let createMicroseconds: UInt64
        let updateMicroseconds: UInt64
    }

    private let state: JudgedState
    private let namePrefix: [UInt8]
    private var stored: [ByteKey: Stored?] = [:]
    /// What the commit makes of documents, by path; nil for one that it deletes.
    private var written: [ByteKey: [UInt8]?] = [:]
    /// Why a document could not be read. What rules said without it does not count.
    private var failure: RequestError?

    init(_ state: borrowing JudgedState) {
        self.state = copy state
        namePrefix = Self.namePrefix(of: state.point.database)
    }

    /// - Throws: why a document could not be read since the last call; `pending` if it can be read later.
    func checkReads() throws(RequestError) { if let error = failure.take() { throw error } }

    /// What stands before the paths of a database's documents in their names.
    static func namePrefix(of database: DatabaseName) -> [UInt8] { database.utf8 + Array("/documents/".utf8) }

    func document(_ read: DocumentRead) -> DocumentAnswer {
        if read.state == .after, let fields = written(at: read.address.utf8) {
            return fields.map { .found($0) } ?? .deleted
        }
        do throws(RequestError) {
            return try document(at: read.address.utf8).map { .found($0.fields) } ?? .missing
        } catch {
            failure = failure ?? error
            // After `pending` the rest is evaluated too, so that all that is not in memory is asked for at once.
            return error.isPending ? .pending : .missing
        }
    }

    /// The document at a path before the commit; nil if there is none.
    func document(at path: [UInt8]) throws(RequestError) -> Stored? {
        let key = ByteKey(path)
        if let known = stored[key] { return known }
        var found: Stored?
        try state.withDocument(namePrefix + path) { document in
            found = Stored(
                fields: [UInt8](copying: document.fields), createMicroseconds: document.createMicroseconds,
                updateMicroseconds: document.updateMicroseconds)
        }
        stored[key] = .some(found)
        return found
    }

    /// Notes what the commit makes of a document; nil if it deletes it.
    func note(_ fields: [UInt8]?, at path: [UInt8]) { written[ByteKey(path)] = .some(fields) }

    /// What the commit, as far as it is noted, makes of a document that it writes; nil if it writes another.
    func written(at path: [UInt8]) -> [UInt8]?? { written[ByteKey(path)] }

    /// The version of each document that was read, 0 for a missing one.
    func version(of path: [UInt8]) -> UInt64 { (stored[ByteKey(path)] ?? nil)?.updateMicroseconds ?? 0 }
}

/// The documents that the rules for reads read, as of one version. Confined to its loop.
final class ReadDocuments: DocumentAccess {
    private let state: JudgedState
    private let namePrefix: [UInt8]
    /// Why a document could not be read. What rules said without it does not count.
    private(set) var failure: RequestError?

    /// - Parameter namePrefix: ``JudgedDocuments/namePrefix(of:)`` of the state's database.
    init(_ state: borrowing JudgedState, namePrefix: [UInt8]) {
        self.state = copy state
        self.namePrefix = namePrefix
    }

    func document(_ read: DocumentRead) -> DocumentAnswer {
        var answer = DocumentAnswer.missing
        do throws(RequestError) {
            try state.withDocument(namePrefix + read.address.utf8) { document in
                answer = .found([UInt8](copying: document.fields))
            }
        } catch {
            // After `pending` the rest is evaluated too, so that all that is not in memory is asked for at once.
            if error.isPending { answer = .pending }
            failure = failure ?? error
        }
        return answer
    }
}

extension JudgedState {
    /// Lends a document, if there is one. A name that no document can have is that of a missing one.
    fileprivate func withDocument(
        _ name: [UInt8], _ body: (FoundDocument) -> Void
    ) throws(RequestError) {
        guard let view = try? ResourceNameView(resource: name.byteSpan), view.isDocument else { return }
        try reader.withDocument(view, at: point, cold) { document in
            if let document { body(document) }
        }
    }
}
