// A batch: writes that apply all or nothing.

public import DocumentCoding
public import Foundation

/// Collects writes and commits them as one. Not thread-safe; using it after `commit` is a programming error.
public final class WriteBatch: NSObject {
    private let firestore: Firestore
    private var recorder: WriteRecorder
    private var isCommitted = false

    init(firestore: Firestore) {
        self.firestore = firestore
        recorder = WriteRecorder(database: firestore.databaseName)
    }

    private func recording(
        _ document: DocumentReference, _ record: (inout WriteRecorder) throws(RuleViolation) -> Void
    ) -> WriteBatch {
        enforcing { () throws(RuleViolation) in
            if isCommitted {
                throw RuleViolation("A write batch can no longer be used after commit has been called.")
            }
            try firestore.checkOwns(document)
            try record(&recorder)
        }
        return self
    }

    /// Replaces the document.
    @discardableResult
    public func setData(_ data: [String: Any], forDocument document: DocumentReference) -> WriteBatch {
        recording(document) { (recorder) throws(RuleViolation) in
            recorder.set(document.name, try WriteValues.set(data, for: document))
        }
    }

    /// Replaces the document, or merges the data into it.
    @discardableResult
    public func setData(
        _ data: [String: Any], forDocument document: DocumentReference, merge: Bool
    ) -> WriteBatch {
        recording(document) { (recorder) throws(RuleViolation) in
            recorder.set(document.name, try WriteValues.set(data, for: document, merge: merge))
        }
    }

    /// Merges the named fields of the data into the document.
    ///
    /// - Parameter mergeFields: dotted `String`s or `FieldPath`s.
    @discardableResult
    public func setData(
        _ data: [String: Any], forDocument document: DocumentReference, mergeFields: [Any]
    ) -> WriteBatch {
        recording(document) { (recorder) throws(RuleViolation) in
            recorder.set(document.name, try WriteValues.set(data, for: document, mergeFields: mergeFields))
        }
    }

    /// Changes fields of the document, which must exist.
    ///
    /// - Parameter fields: keys are dotted `String`s or `FieldPath`s.
    @discardableResult
    public func updateData(_ fields: [AnyHashable: Any], forDocument document: DocumentReference) -> WriteBatch {
        recording(document) { (recorder) throws(RuleViolation) in
            recorder.update(document.name, try WriteValues.update(fields, for: document))
        }
    }

    /// Deletes the document.
    @discardableResult
    public func deleteDocument(_ document: DocumentReference) -> WriteBatch {
        recording(document) { (recorder) throws(RuleViolation) in recorder.delete(document.name) }
    }

    /// Replaces the document by an encoded value. Throws encoding errors only.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, encoder: Firestore.Encoder = .standard
    ) throws -> WriteBatch {
        try encoder.withSetData(from: value, database: document.databaseName) { fields, transforms in
            recording(document) { (recorder) throws(RuleViolation) in
                recorder.set(document.name, fields: fields, transforms: transforms)
            }
        }
    }

    /// Replaces the document by an encoded value, or merges it into the document. Throws encoding errors only.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, merge: Bool,
        encoder: Firestore.Encoder = .standard
    ) throws -> WriteBatch {
        let data = try WriteValues.set(from: value, for: document, merge: merge, encoder)
        return recording(document) { (recorder) throws(RuleViolation) in recorder.set(document.name, data) }
    }

    /// Merges the named fields of an encoded value into the document. Throws encoding errors only.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, mergeFields: [Any],
        encoder: Firestore.Encoder = .standard
    ) throws -> WriteBatch {
        let data = try WriteValues.set(from: value, for: document, mergeFields: mergeFields, encoder)
        return recording(document) { (recorder) throws(RuleViolation) in recorder.set(document.name, data) }
    }

    // MARK: Commit

    /// Commits without telling how it ended.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    public func commit() { firestore.enqueue(close(), completion: nil) }

    /// Commits.
    ///
    /// - Parameter completion: called after the server acknowledged or rejected the batch.
    public func commit(completion: (((any Error)?) -> Void)?) {
        firestore.enqueue(close(), userCompletion: completion)
    }

    /// Commits, and returns after the acknowledgement.
    nonisolated(nonsending) public func commit() async throws { try await firestore.perform(close()) }

    private func close() -> WriteRecorder {
        if isCommitted { programmingError("A write batch can no longer be used after commit has been called.") }
        isCommitted = true
        return recorder
    }
}

extension Firestore {
    /// A new, empty batch.
    @discardableResult
    public func batch() -> WriteBatch {
        checkUsable()
        return WriteBatch(firestore: self)
    }
}
