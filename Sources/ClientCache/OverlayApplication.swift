// Pending and acknowledged writes applied to a client's documents, by the server's code.

internal import Basics
internal import DocumentModel
internal import WriteEngine

/// Applies the writes of batches to documents of the cache. Belongs to one thread at a time.
struct OverlayApplication: ~Copyable {
    private var application = WriteApplication()
    /// How many batches were applied to documents so far.
    private(set) var appliedCount = 0

    // MARK: Pending writes

    /// Applies what a batch does to a document. A write whose condition does not hold changes nothing.
    ///
    /// - Parameter state: what the writes before the batch leave.
    /// - Returns: whether the batch is regular: see ``PendingDocument/isRegular``.
    mutating func apply(_ batch: LocalBatch, path: [UInt8], to state: inout MaybeDocument) -> Bool {
        var isRegular = true
        appliedCount += 1
        let writes = batch.writes(of: path)
        var isBased = false
        for index in writes {
            let write = batch.list.writes[index]
            if !write.isRegular { isRegular = false }
            let base = isBased ? state : based(batch, writes, state)
            guard let outcome = outcome(of: write, batch.list, base, batch.localMicroseconds) else {
                isRegular = false
                continue
            }
            if write.kind == .verify { continue }
            isBased = true
            switch outcome.effect {
            case .delete: state = .missing(microseconds: state.microseconds, isProvisional: false)
            case .none where write.kind == .delete:
                state = .missing(microseconds: state.microseconds, isProvisional: false)
            case .none:
                guard case .found(var document) = base else { continue }
                document.hasPendingWrites = true
                document.isProvisional = false
                document.isPartial = false
                state = .found(document)
            case .put:
                var document = LocalDocument(
                    fields: newFields(of: write, batch.list),
                    createMicroseconds: state.document?.createMicroseconds ?? 0,
                    updateMicroseconds: state.document?.updateMicroseconds ?? 0)
                document.hasPendingWrites = true
                document.estimates = Self.estimates(write, before: state.document)
                state = .found(document)
            }
        }
        return isRegular
    }

    /// The document with the values on which the transforms of its writes are based.
    private func based(_ batch: LocalBatch, _ writes: [Int], _ state: MaybeDocument) -> MaybeDocument {
        if batch.bases.isEmpty { return state }
        let isPending = state.document?.hasPendingWrites ?? false
        let values = writes.flatMap { index in
            batch.bases(of: index).compactMap { base -> (FieldPath, EncodedValue?)? in
                // Writes before it have been claimed since then, and it adds to them.
                if isPending, !base.isOverPending { return nil }
                let transforms = batch.list.writes[index].transforms
                return transforms.indices.contains(base.transform)
                    ? (transforms[base.transform].path, base.value) : nil
            }
        }
        guard !values.isEmpty, case .found(var document) = state,
            let fields = try? FieldEdits.setting(values, in: document.fields)
        else { return state }
        document.fields = fields
        return .found(document)
    }

    /// - Returns: nil if a condition does not hold or the result would break a rule.
    private mutating func outcome(
        of write: Write, _ list: WriteList, _ state: MaybeDocument, _ microseconds: UInt64
    ) -> WriteOutcome? {
        application.budget = WorkBudget()
        guard case .found(let document) = state else {
            return try? application.apply(write, of: list, to: nil, commitMicroseconds: microseconds)
        }
        return try? application.apply(
            write, of: list,
            to: StoredDocumentView(
                createMicroseconds: document.createMicroseconds, updateMicroseconds: document.updateMicroseconds,
                fields: document.fields.byteSpan),
            commitMicroseconds: microseconds)
    }

    private func newFields(of write: Write, _ list: WriteList) -> [UInt8] {
        [UInt8](copying: application.newFields(of: write, in: list))
    }

    /// The fields that contain the local time after a write.
    private static func estimates(_ write: Write, before document: LocalDocument?) -> [PendingTimestamp] {
        let earlier = document?.estimates ?? []
        var result: [PendingTimestamp] = []
        if !earlier.isEmpty, write.mask != nil || write.kind == .transform {
            var replaced = FieldArea()
            for path in write.mask?.paths ?? [] { replaced.insert(path) }
            for transform in write.transforms { replaced.insert(transform.path) }
            result = earlier.filter { !replaced.overlaps($0.path) }
        }
        let paths = write.transforms.filter { $0.operation == .requestTime }.map(\.path)
        if paths.isEmpty { return result }
        var values = DocumentBytes.values(at: paths, in: document?.fields ?? [])
        let known = Dictionary(earlier.map { ($0.path, $0.previous) }) { first, _ in first }
        for (index, path) in paths.enumerated() {
            if let previous = known[path] { values[index] = previous }
            result.append(PendingTimestamp(path: path, previous: values[index]))
        }
        return result
    }

    /// The values on which the local results of a new batch's increments are based.
    ///
    /// - Parameter state: returns what the program sees of the document at a path before the batch, and whether it had
    ///   pending writes.
    static func bases(
        of batch: LocalBatch, _ state: ([UInt8]) -> (MaybeDocument, wasPending: Bool)
    ) -> [LocalBatch.Base] {
        var result: [LocalBatch.Base] = []
        for path in batch.paths {
            let (state, wasPending) = state(path)
            var found: [LocalBatch.Base] = []
            var earlier = FieldArea()
            for index in batch.writes(of: path) {
                let write = batch.list.writes[index]
                // Later increments are based on what this write leaves.
                if write.kind == .delete || write.kind == .update && write.mask == nil { break }
                for (position, transform) in write.transforms.enumerated() {
                    if case .increment = transform.operation, !earlier.overlaps(transform.path) {
                        found.append(
                            LocalBatch.Base(write: index, transform: position, value: nil, isOverPending: wasPending))
                    }
                    earlier.insert(transform.path)
                }
            }
            let paths = found.map { batch.list.writes[$0.write].transforms[$0.transform].path }
            let values = DocumentBytes.values(at: paths, in: state.document?.fields ?? [])
            for (index, value) in values.enumerated() { found[index].value = value }
            result += found
        }
        return result.sorted { $0.write < $1.write }
    }

    // MARK: Acknowledged writes

    /// Applies what the server has done for a batch to the server's state of a document.
    ///
    /// - Parameters:
    ///   - results: one for each write of the batch.
    ///   - commitMicroseconds: the time of the commit.
    mutating func acknowledge(
        _ batch: LocalBatch, path: [UInt8], _ results: [WriteResult], commitMicroseconds: UInt64,
        to state: inout MaybeDocument
    ) {
        // A newer state of the document contains the batch already.
        if state.microseconds >= commitMicroseconds { return }
        for index in batch.writes(of: path) {
            let write = batch.list.writes[index]
            acknowledge(
                write, of: batch.list, results.indices.contains(index) ? results[index] : nil,
                commitMicroseconds: commitMicroseconds, to: &state)
        }
    }

    private mutating func acknowledge(
        _ write: Write, of list: WriteList, _ result: WriteResult?, commitMicroseconds: UInt64,
        to state: inout MaybeDocument
    ) {
        let changedAt = result?.updateMicroseconds ?? commitMicroseconds
        switch write.kind {
        case .verify: return
        case .delete:
            state = .missing(microseconds: commitMicroseconds, isProvisional: true)
            return
        case .update, .transform: break
        }
        let dependsOnDocument = write.mask != nil || write.kind == .transform
        let isPartial = state.isIncomplete && dependsOnDocument && write.precondition != .exists(false)
        guard changedAt >= commitMicroseconds || state.microseconds != changedAt else {
            // The write had no effect, and the cache has the document that it found.
            return
        }
        guard let outcome = outcome(of: write, list, state, commitMicroseconds) else {
            // The server has another document than the cache.
            state = .unknown
            return
        }
        var document = LocalDocument(
            fields: outcome.effect == .put ? newFields(of: write, list) : state.document?.fields ?? [],
            createMicroseconds: state.document?.createMicroseconds ?? commitMicroseconds,
            updateMicroseconds: changedAt)
        if let result, !result.transformResults.isEmpty {
            let values = zip(write.transforms, result.transformResults).compactMap { transform, value in
                transform.operation.hasResult ? (transform.path, Optional(value)) : nil
            }
            if let fields = try? FieldEdits.setting(values, in: document.fields) { document.fields = fields }
        }
        document.isProvisional = true
        document.isPartial = isPartial
        state = .found(document)
    }
}

extension Write {
    /// Whether the write creates or changes a document, whatever its times are.
    fileprivate var isRegular: Bool {
        guard kind == .update || kind == .transform else { return false }
        return precondition == nil || precondition == .exists(true)
    }
}

extension FieldTransform.Operation {
    /// Whether the server returns the new value; it returns null for arrays.
    fileprivate var hasResult: Bool {
        switch self {
        case .requestTime, .increment, .maximum, .minimum: true
        case .appendMissingElements, .removeAllFromArray: false
        }
    }
}
