internal import Basics
internal import DocumentModel
internal import DocumentStore
internal import FirestoreService
internal import SecurityRules

/// The documents that rules read, as of one version, each read once. Confined to its loop.
final class JudgedDocuments: DocumentAccess {
    /// A document in the state before the commit.
    struct Stored {
        let fields: [UInt8]
        let createMicroseconds: UInt64
        let updateMicroseconds: UInt64
    }

    private let state: JudgedState
    private let namePrefix: [UInt8]
    private var stored: [[UInt8]: Stored?] = [:]
    /// What the commit makes of documents, by path; nil for one that it deletes.
    private var written: [[UInt8]: [UInt8]?] = [:]
    /// Why a document could not be read. What rules said without it does not count.
    private(set) var failure: RequestError?

    init(_ state: borrowing JudgedState) {
        self.state = copy state
        namePrefix = state.point.database.utf8 + Array("/documents/".utf8)
    }

    func document(_ read: DocumentRead) -> DocumentAnswer {
        if read.state == .after, let fields = written[read.address.utf8] {
            return fields.map { .found($0) } ?? .deleted
        }
        do throws(RequestError) {
            return try document(at: read.address.utf8).map { .found($0.fields) } ?? .missing
        } catch {
            failure = failure ?? error
            return .missing
        }
    }

    /// The document at a path before the commit; nil if there is none.
    func document(at path: [UInt8]) throws(RequestError) -> Stored? {
        if let known = stored[path] { return known }
        var found: Stored?
        let name = namePrefix + path
        // A path that no document can have is that of a missing one.
        if let view = try? ResourceNameView(resource: name.byteSpan), view.isDocument {
            try state.reader.withDocument(view, at: state.point) { document in
                guard let document else { return }
                found = Stored(
                    fields: [UInt8](copying: document.fields), createMicroseconds: document.createMicroseconds,
                    updateMicroseconds: document.updateMicroseconds)
            }
        }
        stored[path] = .some(found)
        return found
    }

    /// Notes what the commit makes of a document; nil if it deletes it.
    func note(_ fields: [UInt8]?, at path: [UInt8]) { written[path] = .some(fields) }

    /// What the commit, as far as it is noted, makes of a document that it writes; nil if it writes another.
    func written(at path: [UInt8]) -> [UInt8]?? { written[path] }

    /// The version of each document that was read, 0 for a missing one.
    func version(of path: [UInt8]) -> UInt64 { (stored[path] ?? nil)?.updateMicroseconds ?? 0 }
}
