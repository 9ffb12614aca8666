// The writes of a commit under security rules.
//
// First all writes are applied to copies of their documents, as the commit would: the last state of each is what
// `getAfter` reads. Then each write is judged by its method (whether its document exists before the commit decides
// between create and update), the document before the commit and the fields that the write leaves.

internal import Basics
internal import DocumentModel
internal import DocumentStore
internal import Expressions
internal import FirestoreService
internal import SecurityRules
internal import WriteEngine

/// Judges the writes of one commit in slices. Confined to its loop.
final class RulesWriteJudgement: WriteJudgement {
    /// A write as rules see it.
    private struct Judged {
        let path: [UInt8]
        let method: RulesRequest.Method
        let newResource: RulesRequest.NewResource
        /// Whether the fields that the write leaves follow from those before it.
        let dependsOnPrior: Bool
    }

    private let rules: JudgingRules
    private let writes: WriteList
    private let documents: JudgedDocuments
    private let databaseID: String
    private let auth: Operand
    /// `request.time`, and the value of transforms to the time of the request.
    private let time: TimestampValue
    /// The limits of the caller, which the work of the rules counts for.
    private let limited: LimitedCaller
    private let denied: (_ what: String, _ path: RawSpan) throws(RequestError) -> Void

    private var application = WriteApplication()
    private var judged: [Judged] = []
    private var position = 0
    private let ledger = AccessLedger()
    private var basis = CommitBasis()

    /// Bytes of documents that one judgement may read and write; the commit itself may do more.
    private static let workBytesMax = 128 << 20

    /// - Parameter denied: throws.
    init(
        _ rules: JudgingRules, _ writes: WriteList, _ state: JudgedState, databaseID: String, auth: Operand,
        limited: LimitedCaller, denied: @escaping (_ what: String, _ path: RawSpan) throws(RequestError) -> Void
    ) {
        self.rules = rules
        self.writes = writes
        self.databaseID = databaseID
        self.auth = auth
        self.limited = limited
        self.denied = denied
        documents = JudgedDocuments(state)
        time = state.point.readTime
        application.budget = WorkBudget(bytes: Self.workBytesMax)
        judged.reserveCapacity(writes.count)
    }

    func step() throws(RequestError) -> CommitBasis? {
        let step = JudgementStep()
        while judged.count < writes.count {
            try apply(writes.writes[judged.count])
            if step.isOver { return nil }
        }
        while position < judged.count {
            try judge(judged[position])
            position += 1
            if position < judged.count, step.isOver { return nil }
        }
        return basis
    }

    // MARK: Applying

    private func apply(_ write: Write) throws(RequestError) {
        let writes = writes
        let path = [UInt8](copying: writes.path(of: write))
        let stored = try documents.document(at: path)
        let fields: [UInt8]? =
            switch documents.written(at: path) {
            case .some(let written): written
            case .none: stored?.fields
            }
        let newFields = try Self.apply(
            write, of: writes, to: fields, stored, at: UInt64(clamping: time.microseconds), with: &application)
        if write.kind != .verify { documents.note(newFields, at: path) }
        judged.append(
            Judged(
                path: path, method: Self.method(of: write, exists: stored != nil),
                newResource: write.kind == .verify
                    ? .none : write.kind == .delete ? .deleted : .fields(newFields ?? []),
                dependsOnPrior: write.mask != nil || write.kind == .transform || !write.transforms.isEmpty))
    }

    /// The fields of a document after a write; nil if there is no document then.
    private static func apply(
        _ write: Write, of writes: borrowing WriteList, to fields: [UInt8]?, _ stored: JudgedDocuments.Stored?,
        at now: UInt64, with application: inout WriteApplication
    ) throws(RequestError) -> [UInt8]? {
        let outcome: WriteOutcome
        if let fields {
            let view = StoredDocumentView(
                createMicroseconds: stored?.createMicroseconds ?? now,
                updateMicroseconds: stored?.updateMicroseconds ?? now, fields: fields.byteSpan)
            outcome = try application.apply(
                write, of: writes, to: view, commitMicroseconds: now, checksPrecondition: false)
        } else {
            outcome = try application.apply(
                write, of: writes, to: nil, commitMicroseconds: now, checksPrecondition: false)
        }
        switch outcome.effect {
        case .none: return write.kind == .delete ? nil : fields
        case .put: return [UInt8](copying: application.newFields(of: write, in: writes))
        case .delete: return nil
        }
    }

    /// The method of a write. A precondition about existence decides, else whether the document exists before the
    /// commit.
    private static func method(of write: Write, exists: Bool) -> RulesRequest.Method {
        switch write.kind {
        case .verify: return .get
        case .delete: return .delete
        case .update, .transform: break
        }
        switch write.precondition {
        case .exists(let isRequired): return isRequired ? .update : .create
        case .updateTime: return .update
        case nil: return exists ? .update : .create
        }
    }

    // MARK: Judging

    private func judge(_ write: Judged) throws(RequestError) {
        let path = write.path
        let request = RulesRequest(
            write.method, path: AdmittedCaller.segments(path.byteSpan), database: databaseID, auth: auth, time: time,
            newResource: write.newResource)
        let verdict = rules.judge(request, access: documents, ledger: ledger)
        limited.spend(ruleWork: verdict.work)
        try documents.checkReads()
        if !verdict.isAllowed { try denied(write.method.rawValue, path.byteSpan) }
        for read in verdict.reads { note(read.address.utf8) }
        if write.dependsOnPrior, verdict.readsNewResource {
            note(path)
        } else {
            basis.note(path.byteSpan, exists: documents.version(of: path) != 0)
        }
    }

    private func note(_ path: [UInt8]) { basis.note(path.byteSpan, version: documents.version(of: path)) }
}
