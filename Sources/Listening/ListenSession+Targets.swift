// Checking the targets that clients ask for.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages

extension ListenSession {
    /// Checks a target.
    ///
    /// - Parameter condition: what its documents must meet besides its query.
    /// - Throws: the error that the target is removed with.
    func makeTarget(
        _ wanted: ListenTarget, _ condition: TargetCondition?, id: Int32
    ) throws(RequestError) -> Target {
        var resumption = try wanted.resume.map { (resume) throws(RequestError) in
            Target.Resumption(version: try Self.version(of: resume))
        }
        if let count = wanted.expectedCount, count >= 0 { resumption?.expectedCount = Int(count) }
        let (subject, judgement) = try subject(of: wanted, condition)
        return Target(id: id, subject, judgement, isOnce: wanted.once, resumption: resumption, of: self)
    }

    /// The version of a client's state; nil if it cannot be used.
    private static func version(of resume: ListenTarget.Resume) throws(RequestError) -> UInt64? {
        switch resume {
        case .token(let token): return ResumeToken(bytes: token.byteSpan)?.microseconds
        case .readTime(let time):
            if let problem = time.problemAsVersion { throw .invalidArgument("Invalid read_time: \(problem)") }
            return UInt64(time.microseconds)
        }
    }

    /// What is listened to, and what of it is judged: nil without a judge.
    private func subject(
        of wanted: ListenTarget, _ condition: TargetCondition?
    ) throws(RequestError) -> (Target.Subject, TargetJudgement?) {
        switch wanted.kind {
        case nil, .query(_, nil): throw .invalidArgument("A target must have documents or a query.")
        case .invalidQuery(_, let error): throw error
        case .pipeline: throw RequestError(.unimplemented, "Pipelines are not implemented by this server yet.")
        case .documents(let names):
            let paths = try paths(of: names)
            return (.documents(paths), judge.map { _ in TargetJudgement(documents: paths) })
        case .query(let parent, let query?):
            let planned = try self.query(parent, query, condition)
            return (
                .query(planned),
                judge.map { _ in TargetJudgement(query, parent: parent, identityBytes: planned.identity.count) }
            )
        }
    }

    private func paths(of names: [String]) throws(RequestError) -> [[UInt8]] {
        if names.count > hub.limits.documents {
            throw .invalidArgument("A target may have at most \(hub.limits.documents) documents. Use several targets.")
        }
        var paths: Set<[UInt8]> = []
        for name in names {
            let bytes = Array(name.utf8)
            let view = try ResourceNameView(resource: bytes.byteSpan, rules: .request)
            guard view.isDocument else { throw .invalidArgument("\"\(name)\" is not the name of a document.") }
            try checkDatabase(view)
            paths.insert([UInt8](copying: view.pathBytes))
        }
        return paths.sorted { ResourcePath.compare($0.byteSpan, $1.byteSpan) < 0 }
    }

    private func query(
        _ parent: String, _ query: StructuredQuery, _ condition: TargetCondition?
    ) throws(RequestError) -> TargetQuery {
        let bytes = Array(parent.utf8)
        let view = try ResourceNameView(resource: bytes.byteSpan, rules: .request)
        try checkDatabase(view)
        return try TargetQuery(
            parent: view, query, condition?.condition,
            identity: TargetQuery.identity(parent: parent, query, condition))
    }

    private func checkDatabase(_ name: borrowing ResourceNameView) throws(RequestError) {
        let expected = database.utf8
        if !name.databaseBytes.equalsBytes(expected.byteSpan) {
            throw .invalidArgument(
                "\"\(String(repairingUTF8: name.bytes))\" is not in the stream's database \(database).")
        }
    }
}

/// The ids of a stream's targets: the client's choice for all of them, or the server's.
struct TargetIDs {
    private var isChosenByServer: Bool?
    private var last: Int32 = 0

    /// - Parameter wanted: the id that the client sent; 0 has the server choose.
    /// - Throws: `INVALID_ARGUMENT` for a negative id, and where only some targets of a stream have ids.
    mutating func take(_ wanted: Int32) throws(RequestError) -> Int32 {
        if wanted < 0 { throw .invalidArgument("A target id must not be negative.") }
        if let isChosenByServer, isChosenByServer != (wanted == 0) {
            throw .invalidArgument("Either all targets of a stream have ids, or none.")
        }
        isChosenByServer = wanted == 0
        if wanted > 0 { return wanted }
        last = last == .max ? 1 : last + 1
        return last
    }
}
