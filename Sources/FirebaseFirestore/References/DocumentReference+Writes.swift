// Writes of one document. Methods with a completion, and those without, return immediately and send the writes in the
// order of the calls. The async methods return after the server has acknowledged the write.

public import DocumentCoding
import Foundation

extension DocumentReference {
    // MARK: Replace and merge

    /// Replaces the document.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    public func setData(_ documentData: [String: Any]) { setData(documentData, completion: nil) }

    /// Replaces the document.
    public func setData(_ documentData: [String: Any], completion: (((any Error)?) -> Void)?) {
        firestore.enqueue(
            recording { (recorder) throws(RuleViolation) in
                recorder.set(name, try WriteValues.set(documentData, for: self))
            }, userCompletion: completion)
    }

    /// Replaces the document.
    nonisolated(nonsending) public func setData(_ documentData: [String: Any]) async throws {
        try await firestore.perform(
            recording { (recorder) throws(RuleViolation) in
                recorder.set(name, try WriteValues.set(documentData, for: self))
            })
    }

    /// Replaces the document, or merges the data into it: maps merge deeply, arrays and other values replace.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    public func setData(_ documentData: [String: Any], merge: Bool) {
        setData(documentData, merge: merge, completion: nil)
    }

    /// Replaces the document, or merges the data into it.
    public func setData(
        _ documentData: [String: Any], merge: Bool, completion: (((any Error)?) -> Void)?
    ) {
        firestore.enqueue(
            recording { (recorder) throws(RuleViolation) in
                recorder.set(name, try WriteValues.set(documentData, for: self, merge: merge))
            }, userCompletion: completion)
    }

    /// Replaces the document, or merges the data into it.
    nonisolated(nonsending) public func setData(_ documentData: [String: Any], merge: Bool) async throws {
        try await firestore.perform(
            recording { (recorder) throws(RuleViolation) in
                recorder.set(name, try WriteValues.set(documentData, for: self, merge: merge))
            })
    }

    /// Merges the named fields of the data into the document.
    ///
    /// - Parameter mergeFields: dotted `String`s or `FieldPath`s, each with a value in the data.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    public func setData(_ documentData: [String: Any], mergeFields: [Any]) {
        setData(documentData, mergeFields: mergeFields, completion: nil)
    }

    /// Merges the named fields of the data into the document.
    public func setData(
        _ documentData: [String: Any], mergeFields: [Any], completion: (((any Error)?) -> Void)?
    ) {
        firestore.enqueue(
            recording { (recorder) throws(RuleViolation) in
                recorder.set(name, try WriteValues.set(documentData, for: self, mergeFields: mergeFields))
            }, userCompletion: completion)
    }

    /// Merges the named fields of the data into the document.
    nonisolated(nonsending) public func setData(_ documentData: [String: Any], mergeFields: [Any]) async throws {
        try await firestore.perform(
            recording { (recorder) throws(RuleViolation) in
                recorder.set(name, try WriteValues.set(documentData, for: self, mergeFields: mergeFields))
            })
    }

    // MARK: Update and delete

    /// Changes fields of the document, which must exist.
    ///
    /// - Parameter fields: keys are dotted `String`s or `FieldPath`s; `FieldValue.delete()` removes a field.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    public func updateData(_ fields: [AnyHashable: Any]) { updateData(fields, completion: nil) }

    /// Changes fields of the document, which must exist: otherwise the error is `.notFound`.
    public func updateData(_ fields: [AnyHashable: Any], completion: (((any Error)?) -> Void)?) {
        firestore.enqueue(
            recording { (recorder) throws(RuleViolation) in
                recorder.update(name, try WriteValues.update(fields, for: self))
            }, userCompletion: completion)
    }

    /// Changes fields of the document, which must exist: otherwise the error is `.notFound`.
    nonisolated(nonsending) public func updateData(_ fields: [AnyHashable: Any]) async throws {
        try await firestore.perform(
            recording { (recorder) throws(RuleViolation) in
                recorder.update(name, try WriteValues.update(fields, for: self))
            })
    }

    /// Checks an update for callers that report what is wrong with it: the typed layer.
    ///
    /// - Throws: an `NSError` with `.invalidArgument` and the text of the trap if the update is a programming error.
    package func checkUpdate(_ fields: [AnyHashable: Any]) throws {
        do throws(RuleViolation) {
            _ = try WriteValues.update(fields, for: self)
        } catch {
            throw NSError.firestore(.invalidArgument, error.message)
        }
    }

    /// Deletes the document. It is not an error if it does not exist.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    public func delete() { delete(completion: nil) }

    /// Deletes the document. It is not an error if it does not exist.
    public func delete(completion: (((any Error)?) -> Void)?) {
        firestore.enqueue(
            recording { (recorder) throws(RuleViolation) in recorder.delete(name) }, userCompletion: completion)
    }

    /// Deletes the document. It is not an error if it does not exist.
    nonisolated(nonsending) public func delete() async throws {
        try await firestore.perform(recording { (recorder) throws(RuleViolation) in recorder.delete(name) })
    }

    func recording(_ record: (inout WriteRecorder) throws(RuleViolation) -> Void) -> WriteRecorder {
        enforcing { () throws(RuleViolation) in
            var recorder = WriteRecorder(database: firestore.databaseName)
            try record(&recorder)
            return recorder
        }
    }
}

// MARK: - Codable

extension DocumentReference {
    /// Replaces the document by an encoded value.
    ///
    /// There is no async form, as in the SDK: the call returns at once and throws encoding errors only.
    public func setData<T: Encodable>(
        from value: T, encoder: Firestore.Encoder = .standard,
        completion: (((any Error)?) -> Void)? = nil
    ) throws {
        let data = try WriteValues.set(from: value, for: self, encoder)
        enqueueSet(data, completion)
    }

    /// Replaces the document by an encoded value, or merges it into the document.
    public func setData<T: Encodable>(
        from value: T, merge: Bool, encoder: Firestore.Encoder = .standard,
        completion: (((any Error)?) -> Void)? = nil
    ) throws {
        let data = try WriteValues.set(from: value, for: self, merge: merge, encoder)
        enqueueSet(data, completion)
    }

    /// Merges the named fields of an encoded value into the document.
    public func setData<T: Encodable>(
        from value: T, mergeFields: [Any], encoder: Firestore.Encoder = .standard,
        completion: (((any Error)?) -> Void)? = nil
    ) throws {
        let data = try WriteValues.set(from: value, for: self, mergeFields: mergeFields, encoder)
        enqueueSet(data, completion)
    }

    private func enqueueSet(_ data: DocumentWriteData, _ completion: (((any Error)?) -> Void)?) {
        firestore.enqueue(
            recording { (recorder) throws(RuleViolation) in recorder.set(name, data) }, userCompletion: completion)
    }
}
