// The judgement of a commit: made before its turn by a judge that the store does not know, and verified at its turn.

internal import Basics
internal import DocumentModel
internal import StoreFormat

extension CommitPipeline {
    /// Makes sure that the request was allowed, and that what the judgement rested on is unchanged.
    ///
    /// - Throws: the request's refusal, which ends its transaction; `judgementOutdated`, after which the transaction
    ///   stays open with its locks; what storage throws.
    func checkJudgement(of request: borrowing CommitRequest) throws(RequestError) {
        if request.basis == nil && request.refusal == nil { return }
        do throws(RequestError) {
            if let refusal = request.refusal { throw refusal }
            if let basis = request.basis, try !stands(basis, in: request.writes.database) { throw .judgementOutdated }
        } catch {
            if !error.isJudgementOutdated, let transaction = request.transaction { _ = transactions.end(transaction) }
            throw error
        }
    }

    /// Whether the newest state of the documents, staged commits included, is what was seen.
    private func stands(_ basis: CommitBasis, in database: DatabaseName) throws(RequestError) -> Bool {
        let number = databases.number(of: database)
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        return try basis.stands { (path) throws(RequestError) in
            // No document has a path of one segment.
            guard let number, path.firstOffset(of: UInt8(ascii: "/")) ?? 0 > 0 else { return 0 }
            DocumentKey.write(path, database: number, into: &key)
            return try validation.latestUpdate(of: key.bytes)
        }
    }
}

extension PendingResult {
    /// Whether the request is going to be judged and made again.
    var isJudgementOutdated: Bool {
        if case .failure(let error) = result { error.isJudgementOutdated } else { false }
    }
}
