// Applying one write to one document: pure, on wire bytes, without storage.
//
// The commit thread calls `apply` for each write of a request with the document as the writes before it left it, and
// stages what comes back. In order:
//
//   1. the precondition is checked against the stored document (`Precondition.check`);
//   2. the update is applied: all fields, or the paths of the mask (`FieldEdits`);
//   3. the transforms are applied, each seeing those before it (`TransformValue`);
//   4. a document that came out byte for byte as it was has not changed: its update time stays.
//
// A plain set of a document costs one comparison with the stored bytes: the list validated it when the request was read
// and its bytes are stored as they are. Masks and transforms rewrite the document into a buffer that is kept from write
// to write, and the result is validated, because parts that are legal may add up to a document that is not.

package import Basics
package import DocumentModel

/// A stored document, lent.
@usableFromInline package struct StoredDocumentView: ~Escapable {
    /// Microseconds since 1970.
    @usableFromInline package let createMicroseconds: UInt64
    /// Microseconds since 1970.
    @usableFromInline package let updateMicroseconds: UInt64
    /// Canonical field entries.
    @usableFromInline package let fields: RawSpan

    @inlinable
    @_lifetime(copy fields)
    package init(createMicroseconds: UInt64, updateMicroseconds: UInt64, fields: RawSpan) {
        self.createMicroseconds = createMicroseconds
        self.updateMicroseconds = updateMicroseconds
        self.fields = fields
    }
}

/// What a write does to the stored document, and what the client gets.
package struct WriteOutcome: Sendable, Equatable {
    package enum Effect: Sendable {
        /// The stored document stays as it is, or stays absent.
        case none
        /// The document is stored with `createMicroseconds`, the commit's time and `WriteApplication.newFields`.
        case put
        /// The stored document is removed.
        case delete
    }

    package let effect: Effect

    /// When the document came into being; meaningful for `.put`.
    package let createMicroseconds: UInt64

    /// The answer to the client.
    package let result: WriteResult
}

/// Applies writes to documents, one after the other, reusing its buffers.
///
/// Belongs to one thread at a time.
package struct WriteApplication: ~Copyable {
    /// The document that the last write with a mask or transforms made.
    private var merged = ByteBuffer()
    /// The document after the mask and before the transforms, or between two transforms.
    private var base = ByteBuffer()
    /// Values that transforms computed.
    private var values = ByteBuffer()
    /// A value between two transforms of one field.
    private var operand = ByteBuffer()
    /// Whether the last `.put` is in `merged` and not in its list.
    private var isMerged = false

    /// What the writes may still cost, all together. Spent work is not given back when a write fails.
    package var budget = WorkBudget()

    package init() {}

    /// Applies a write.
    ///
    /// - Parameters:
    ///   - current: the document as the writes before this one left it; nil if absent.
    ///   - commitMicroseconds: the time of the commit, later than every update time in the database.
    ///   - checksPrecondition: false applies the write as if its precondition held.
    /// - Throws: `NOT_FOUND`, `ALREADY_EXISTS` or `FAILED_PRECONDITION` for a precondition that does not hold,
    ///   `INVALID_ARGUMENT` for a document that the write would make illegal, `RESOURCE_EXHAUSTED` when the budget is
    ///   spent.
    package mutating func apply(
        _ write: Write, of list: borrowing WriteList, to current: StoredDocumentView?,
        commitMicroseconds: UInt64, checksPrecondition: Bool = true
    ) throws(RequestError) -> WriteOutcome {
        isMerged = false
        let exists = current != nil
        let createMicroseconds = current?.createMicroseconds ?? commitMicroseconds
        let updateMicroseconds = current?.updateMicroseconds
        if checksPrecondition, let precondition = write.precondition {
            try check(
                precondition, of: write, in: list, updateMicroseconds: updateMicroseconds,
                commitMicroseconds: commitMicroseconds)
        }
        if let current { budget.spend(current.fields.byteCount) }
        budget.spend(write.fields.count)
        try budget.check()
        switch write.kind {
        case .verify:
            return WriteOutcome(
                effect: .none, createMicroseconds: 0, result: WriteResult(updateMicroseconds: nil))
        case .delete:
            return WriteOutcome(
                effect: exists ? .delete : .none, createMicroseconds: 0, result: WriteResult(updateMicroseconds: nil))
        case .update, .transform: break
        }
        var results: [EncodedValue] = []
        if write.mask != nil || write.kind == .transform || !write.transforms.isEmpty {
            do throws(InvalidDocument) {
                results = try merge(write, list, current, commitMicroseconds)
                if !budget.isSpent { try checkMerged(name: list.name(of: write)) }
            } catch {
                throw RequestError(error, documentName: list.nameText(of: write))
            }
            try budget.check()
            isMerged = true
        }
        if let current, current.fields.equalsBytes(newFields(of: write, in: list)) {
            return WriteOutcome(
                effect: .none, createMicroseconds: createMicroseconds,
                result: WriteResult(updateMicroseconds: updateMicroseconds, transformResults: results))
        }
        return WriteOutcome(
            effect: .put, createMicroseconds: createMicroseconds,
            result: WriteResult(updateMicroseconds: commitMicroseconds, transformResults: results))
    }

    /// Applies masked updates of one document in one pass, if they come to the same as one update.
    ///
    /// - Parameters:
    ///   - run: positions in the list of writes that are masked updates of this document.
    ///   - fields: the fields of the document, which exists.
    /// - Returns: false if they have to be applied one by one. If true, `mergedFields` are the document's fields.
    package mutating func merge(
        _ run: Range<Int>, of list: borrowing WriteList, to fields: RawSpan
    ) throws(RequestError) -> Bool {
        let write = list.writes[run.lowerBound]
        do throws(InvalidDocument) {
            guard let edits = try FieldEdits.merging(run, of: list) else { return false }
            merged.reset(keeping: Self.bufferBytesKept)
            try edits.apply(to: fields, values: list.bytes.byteSpan, into: &merged)
            try checkMerged(name: list.name(of: write))
        } catch {
            throw RequestError(error, documentName: list.nameText(of: write))
        }
        budget.spend(fields.byteCount + merged.count)
        for position in run { budget.spend(list.writes[position].fields.count) }
        try budget.check()
        return true
    }

    /// The fields that `merge` left.
    package var mergedFields: RawSpan { @_lifetime(borrow self) borrowing get { merged.bytes } }

    /// The fields to store after `apply` returned `.put`, lent until the next write.
    @_lifetime(borrow self, borrow list)
    package borrowing func newFields(of write: Write, in list: borrowing WriteList) -> RawSpan {
        isMerged ? merged.bytes : list.fields(of: write)
    }
}

// MARK: Masks and transforms

extension WriteApplication {
    /// Leaves in `merged` what the mask and the transforms make of the document, and returns the transforms' results.
    private mutating func merge(
        _ write: Write, _ list: borrowing WriteList, _ current: StoredDocumentView?, _ commitMicroseconds: UInt64
    ) throws(InvalidDocument) -> [EncodedValue] {
        base.reset(keeping: Self.bufferBytesKept)
        var stored = RawSpan()
        if let current { stored = current.fields }
        if let mask = write.mask {
            let new = list.fields(of: write)
            try FieldEdits(setting: mask.paths, from: new).apply(to: stored, values: new, into: &base)
        } else if write.kind == .update {
            base.append(list.fields(of: write))
        } else {
            base.append(stored)
        }
        budget.spend(base.count)
        let results = try transform(write.transforms, commitMicroseconds)
        swap(&base, &merged)
        return results
    }

    /// Applies transforms to the document in `base`, each to what those before it left. When the budget is spent it
    /// stops half-way.
    private mutating func transform(
        _ transforms: [FieldTransform], _ commitMicroseconds: UInt64
    ) throws(InvalidDocument) -> [EncodedValue] {
        if transforms.isEmpty { return [] }
        if let chains = TransformChain.chains(of: transforms) {
            return try pass(transforms, chains, commitMicroseconds)
        }
        // Some lead into fields that others change: one after the other.
        var results: [EncodedValue] = []
        for position in transforms.indices {
            if position > 0 { budget.spend(base.count) }
            if budget.isSpent { break }
            let chain = TransformChain(transforms[position].path, position: 0)
            results += try pass([transforms[position]], [chain], commitMicroseconds)
        }
        return results
    }

    /// Applies transforms in one pass over the document in `base`.
    private mutating func pass(
        _ transforms: [FieldTransform], _ chains: [TransformChain], _ commitMicroseconds: UInt64
    ) throws(InvalidDocument) -> [EncodedValue] {
        var results = [EncodedValue](repeating: .null, count: transforms.count)
        values.reset(keeping: Self.bufferBytesKept)
        merged.reset(keeping: Self.bufferBytesKept)
        try Self.transform(
            base, by: transforms, in: chains, commitMicroseconds: commitMicroseconds, values: &values,
            operand: &operand, budget: &budget, into: &merged, results: &results)
        swap(&base, &merged)
        return results
    }

    /// Writes the document as chains of transforms leave it.
    private static func transform(
        _ document: borrowing ByteBuffer, by transforms: [FieldTransform], in chains: [TransformChain],
        commitMicroseconds: UInt64, values: inout ByteBuffer, operand: inout ByteBuffer, budget: inout WorkBudget,
        into writer: inout ByteBuffer, results: inout [EncodedValue]
    ) throws(InvalidDocument) {
        let fields = document.bytes
        let stored = try FieldRanges.locate(chains.map(\.path), in: fields)
        var edits: [FieldEdit] = []
        for (chain, range) in zip(chains, stored) {
            let start = values.count
            let operation = transforms[chain.first].operation
            let isReported = try TransformValue.append(
                operation, stored: range == nil ? nil : fields.extracting(range ?? 0..<0),
                commitMicroseconds: commitMicroseconds, budget: &budget, into: &values)
            if budget.isSpent { return }
            if isReported {
                results[chain.first] = EncodedValue(copying: values.bytes.extracting(start..<values.count))
            }
            for position in chain.others {
                let operation = transforms[position].operation
                operand.reset(keeping: Self.bufferBytesKept)
                operand.append(values.bytes.extracting(start..<values.count))
                values.truncate(to: start)
                let isReported = try TransformValue.append(
                    operation, stored: operand.bytes, commitMicroseconds: commitMicroseconds, budget: &budget,
                    into: &values)
                if budget.isSpent { return }
                if isReported {
                    results[position] = EncodedValue(copying: values.bytes.extracting(start..<values.count))
                }
            }
            edits.append(FieldEdit(path: chain.path, value: start..<values.count))
        }
        try FieldEdits(edits).apply(to: fields, values: values.bytes, into: &writer)
    }

    /// Throws unless the document in `merged` is legal; makes sure that it is canonical.
    private mutating func checkMerged(name: RawSpan) throws(InvalidDocument) {
        let validity = try DocumentValidator.validate(fields: merged.bytes)
        if !validity.isCanonical {
            base.reset(keeping: Self.bufferBytesKept)
            try Self.canonicalize(merged, into: &base)
            swap(&base, &merged)
        }
        try WriteList.checkDocumentSize(name: name, fieldsSize: validity.size)
    }

    private static func canonicalize(
        _ document: borrowing ByteBuffer, into writer: inout ByteBuffer
    ) throws(InvalidDocument) {
        try DocumentCanonicalizer.canonicalize(fields: document.bytes, into: &writer)
    }

    /// Room that a buffer keeps from one write to the next: the largest document fits.
    private static var bufferBytesKept: Int { 1 << 21 }

    private func check(
        _ precondition: Precondition, of write: Write, in list: borrowing WriteList, updateMicroseconds: UInt64?,
        commitMicroseconds: UInt64
    ) throws(RequestError) {
        guard
            let failure = precondition.failure(
                updateMicroseconds: updateMicroseconds, commitMicroseconds: commitMicroseconds)
        else { return }
        throw failure.error(documentName: list.nameText(of: write))
    }
}
