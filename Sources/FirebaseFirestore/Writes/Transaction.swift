// One attempt of a transaction, as its block sees it: blocking reads of a snapshot, then recorded writes.

import Basics
public import DocumentCoding
import DocumentModel
public import Foundation
import HearthClient
import Synchronization

/// Reads and writes that happen as if nothing else happened meanwhile.
///
/// Only valid inside the block of `runTransaction`, which may run several times. All reads come before all writes.
public final class Transaction: NSObject {
    private let firestore: Firestore
    private let attempt: TransactionAttempt
    private var recorder: WriteRecorder
    private var isOver = false
    /// Documents that were read and did not exist.
    private var missing: Set<UTF8Text> = []

    init(firestore: Firestore, attempt: TransactionAttempt) {
        self.firestore = firestore
        self.attempt = attempt
        recorder = WriteRecorder(database: firestore.databaseName)
    }

    /// Reads a document as of the beginning of the transaction. Blocks the calling thread.
    ///
    /// - Returns: a snapshot; for a document that does not exist `exists` is `false`.
    /// - Throws: an `NSError`; `.invalidArgument` after the first write, `.failedPrecondition` after `terminate`.
    @discardableResult
    public func getDocument(_ document: DocumentReference) throws -> DocumentSnapshot {
        check(document)
        if firestore.isTerminated { throw RequestError.terminated.asNSError }
        guard recorder.documents.isEmpty else {
            throw NSError.firestore(
                .invalidArgument, "Firestore transactions require all reads to be executed before all writes.")
        }
        switch attempt.readBlocking(document.name) {
        case .success(let stored):
            if stored == nil { missing.insert(UTF8Text(document.name)) }
            return DocumentSnapshot(reference: document, stored: stored.map { VisibleDocument($0) })
        case .failure(let error):
            // A read on its way when the client ends is cancelled.
            throw (firestore.isTerminated ? RequestError.terminated : error).asNSError
        }
    }

    /// Replaces the document.
    @discardableResult
    public func setData(_ data: [String: Any], forDocument document: DocumentReference) -> Transaction {
        recording(document) { (recorder) throws(RuleViolation) in
            recorder.set(document.name, try WriteValues.set(data, for: document))
        }
    }

    /// Replaces the document, or merges the data into it.
    @discardableResult
    public func setData(
        _ data: [String: Any], forDocument document: DocumentReference, merge: Bool
    ) -> Transaction {
        recording(document) { (recorder) throws(RuleViolation) in
            recorder.set(document.name, try WriteValues.set(data, for: document, merge: merge))
        }
    }

    /// Merges the named fields of the data into the document.
    @discardableResult
    public func setData(
        _ data: [String: Any], forDocument document: DocumentReference, mergeFields: [Any]
    ) -> Transaction {
        recording(document) { (recorder) throws(RuleViolation) in
            recorder.set(document.name, try WriteValues.set(data, for: document, mergeFields: mergeFields))
        }
    }

    /// Changes fields of the document, which must exist.
    @discardableResult
    public func updateData(_ fields: [AnyHashable: Any], forDocument document: DocumentReference) -> Transaction {
        recording(document) { (recorder) throws(RuleViolation) in
            if missing.contains(UTF8Text(document.name)), !recorder.writes(to: document.name) {
                recorder.fail(.invalidArgument("Can't update a document that doesn't exist."))
            }
            recorder.update(document.name, try WriteValues.update(fields, for: document))
        }
    }

    /// Deletes the document.
    @discardableResult
    public func deleteDocument(_ document: DocumentReference) -> Transaction {
        recording(document) { (recorder) throws(RuleViolation) in recorder.delete(document.name) }
    }

    /// Replaces the document by an encoded value. Throws encoding errors only.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, encoder: Firestore.Encoder = .standard
    ) throws -> Transaction {
        let data = try WriteValues.set(from: value, for: document, encoder)
        return recording(document) { (recorder) throws(RuleViolation) in recorder.set(document.name, data) }
    }

    /// Replaces the document by an encoded value, or merges it into the document. Throws encoding errors only.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, merge: Bool,
        encoder: Firestore.Encoder = .standard
    ) throws -> Transaction {
        let data = try WriteValues.set(from: value, for: document, merge: merge, encoder)
        return recording(document) { (recorder) throws(RuleViolation) in recorder.set(document.name, data) }
    }

    /// Merges the named fields of an encoded value into the document. Throws encoding errors only.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, mergeFields: [Any],
        encoder: Firestore.Encoder = .standard
    ) throws -> Transaction {
        let data = try WriteValues.set(from: value, for: document, mergeFields: mergeFields, encoder)
        return recording(document) { (recorder) throws(RuleViolation) in recorder.set(document.name, data) }
    }

    /// Ends the block's part: what it recorded.
    func finish() -> WriteRecorder {
        isOver = true
        return recorder
    }

    private func check(_ document: DocumentReference) {
        enforcing { () throws(RuleViolation) in
            if isOver {
                throw RuleViolation("A transaction object cannot be used after its update callback has been invoked.")
            }
            try firestore.checkOwns(document)
        }
    }

    private func recording(
        _ document: DocumentReference, _ record: (inout WriteRecorder) throws(RuleViolation) -> Void
    ) -> Transaction {
        check(document)
        enforcing { () throws(RuleViolation) in try record(&recorder) }
        return self
    }
}

/// How often a transaction tries.
public final class TransactionOptions: NSObject, NSCopying {
    /// Attempts in all, 1 to Int32.max, 5 unless set; anything else is a programming error.
    public var maxAttempts: Int = TransactionRetry.standardAttempts {
        didSet {
            if maxAttempts <= 0 { programmingError("Invalid maxAttempts: must be greater than 0") }
            if maxAttempts > Int(Int32.max) { programmingError("Invalid maxAttempts: must not exceed \(Int32.max)") }
        }
    }

    public override init() {}

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = TransactionOptions()
        copy.maxAttempts = maxAttempts
        return copy
    }

    public override func isEqual(_ object: Any?) -> Bool {
        (object as? TransactionOptions)?.maxAttempts == maxAttempts
    }

    public override var hash: Int { maxAttempts }
}
