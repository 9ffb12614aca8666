import Basics
import DocumentModel
import DocumentStore
internal import QueryEngine

/// A target of a stream. Confined to the thread of its hub.
final class Target {
    /// What is listened to.
    enum Subject {
        /// Paths below `documents`, each once, in the order of their names.
        case documents([[UInt8]])
        case query(TargetQuery)
    }

    /// The state that the client has from before.
    struct Resumption {
        /// The version of the client's state, in microseconds; nil if it cannot be used.
        var version: UInt64?
        /// The number of documents in the client's state, if the client sent it.
        var expectedCount: Int?
    }

    let id: Int32
    var subject: Subject
    let isOnce: Bool
    /// Nil for a client that has no state.
    let resumption: Resumption?
    unowned let session: ListenSession

    /// False after it was removed: nothing of it is sent any more.
    var isActive = true
    /// Whether the state that its first snapshot must show is not visible yet.
    var isAwaited = false
    /// Whether the router sends it changes.
    var isRouted = false
    /// Where it is in the list of its query.
    var position = 0
    /// Where it is in the lists of its documents, in the order of the paths; empty unless it is routed.
    var positions: [Int] = []
    /// The first version of the client's state on this stream: changes up to it are not missing.
    var since: UInt64 = 0

    /// Whether the client has all its documents, as of the stream's last snapshot.
    var isCurrent = false

    /// Whether two states of it are being compared.
    var isBeingRead = false

    /// Nil if the session has no judge, and after the target was removed.
    var judgement: TargetJudgement?

    // MARK: A query with offset or limit

    /// The results that the client has.
    var window = ResultRange()
    /// The version before the first change that may have changed the results; nil if there was none.
    var windowBase: UInt64?

    init(
        id: Int32, _ subject: Subject, _ judgement: TargetJudgement?, isOnce: Bool, resumption: Resumption?,
        of session: ListenSession
    ) {
        self.id = id
        self.subject = subject
        self.judgement = judgement
        self.isOnce = isOnce
        self.resumption = resumption
        self.session = session
    }

    /// Memory that it holds, in bytes; an estimate.
    var byteCount: Int {
        let subjectBytes =
            switch subject {
            case .documents(let paths): paths.reduce(1_024) { $0 + $1.count + 128 }
            case .query(let query): 2_048 + 4 * query.identity.count
            }
        return subjectBytes + (judgement?.byteCount ?? 0)
    }

    /// What is listened to, for people; a long text is cut.
    var text: String {
        switch subject {
        case .documents(let paths):
            let shown = paths.prefix(3).map { String(decoding: $0, as: UTF8.self) }.joined(separator: ", ")
            return String((paths.count > 3 ? "\(shown) and \(paths.count - 3) more" : shown).prefix(500))
        case .query(let query): return String("\(query.plan)".prefix(500))
        }
    }

    /// It is at another position in the list of one of its documents.
    func note(_ position: Int, ofDocument path: [UInt8]) {
        guard case .documents(let paths) = subject else { return }
        let index = paths.partitioningIndex { ResourcePath.compare($0.byteSpan, path.byteSpan) >= 0 }
        positions[index] = position
    }

    /// Its query if that has an offset or a limit.
    var windowQuery: TargetQuery? {
        if case .query(let query) = subject, query.isWindow { query } else { nil }
    }

    /// The fields to send; nil sends all.
    var selection: FieldSelection? {
        if case .query(let query) = subject { query.selection } else { nil }
    }
}
