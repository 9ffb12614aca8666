package import Basics
internal import Synchronization

/// Revocations that several servers have in common. Thread-safe. Each call may block.
package protocol SharedRevocations: Sendable {
    /// The address of the source, if these are those of a replica; else empty.
    var source: String { get }

    /// What was added since the last call.
    /// - Throws: `UNAVAILABLE`.
    func news() throws(RequestError) -> RevocationNews

    /// Adds revocations for all servers; of each user the one that reaches farthest counts. What is there already
    /// changes nothing.
    /// - Throws: `UNAVAILABLE`: whether they were added is not known. `RESOURCE_EXHAUSTED` if there are too many.
    func add(_ moments: Revocations.Moments) throws(RequestError)
}

extension SharedRevocations {
    package var source: String { "" }
}

/// What others have added to the revocations that several servers have in common.
package struct RevocationNews: Sendable {
    package let moments: Revocations.Moments
    /// These are all that there are now: the servers begin to have them in common, or have lost some.
    package let isWhole: Bool

    package init(_ moments: Revocations.Moments, isWhole: Bool) {
        self.moments = moments
        self.isWhole = isWhole
    }
}

/// Revokes users at a server, and at all that have their revocations in common with it. Thread-safe. Every function may
/// block.
///
///     revoke(uid) ──► Revocations: in force here, durable ──► SharedRevocations ──► the other servers
///
/// A revocation is never taken back. What this server knows and the others do not, for example since their database was
/// restored to an earlier state, is added there again.
package final class RevocationKeeper: Sendable {
    private struct Comparison {
        /// What the servers have in common, as far as this one knows.
        var shared: Revocations.Moments = [:]
        /// The version of this server's revocations that was compared with it; nil if it must be again.
        var compared: UInt64?
    }

    private let revocations: Revocations
    private let shared: (any SharedRevocations)?
    /// Held while the other servers' revocations are compared with those of this one.
    private let comparison = Mutex(Comparison())

    /// Characters of a user's identifier.
    package static let lengths = 1...128

    /// - Parameter shared: what several servers have in common; nil for a server alone.
    package init(_ revocations: Revocations, shared: (any SharedRevocations)? = nil) {
        self.revocations = revocations
        self.shared = shared
    }

    /// Whether other servers have these revocations too.
    package var isShared: Bool { shared != nil }

    /// ``SharedRevocations/source``.
    package var source: String { shared?.source ?? "" }

    /// ``Revocations/areAwaited``.
    package var areAwaited: Bool {
        get { revocations.areAwaited }
        set { revocations.areAwaited = newValue }
    }

    /// Those of this server. The version grows with each change.
    package var moments: Revocations.Moments { revocations.moments }
    package var version: UInt64 { revocations.version }

    /// Adds what was revoked elsewhere.
    ///
    /// - Returns: of how many users tokens are refused by it that were not before.
    /// - Throws: `FAILED_PRECONDITION` if they cannot be kept. They are in force then, unless there are too many.
    package func add(_ moments: Revocations.Moments) throws(RequestError) -> Int {
        let lacked = moments.later(than: revocations.moments)
        if !lacked.isEmpty || !revocations.isKept { try keep(lacked) }
        return lacked.count
    }

    /// Refuses the user's tokens of sign-ins before a moment.
    ///
    /// - Parameter moment: in seconds since 1970.
    /// - Throws: `INVALID_ARGUMENT` for an identifier that is too long, `FAILED_PRECONDITION` if the revocation cannot
    ///   be kept here: the message says whether it is in force. `UNAVAILABLE`, `RESOURCE_EXHAUSTED` if it is in force
    ///   here, and the other servers do not know it yet: ``takeShared()`` adds it later.
    package func revoke(uid: String, before moment: Int64) throws(RequestError) {
        try revoke([Array(uid.utf8): moment])
    }

    /// The same for several users.
    package func revoke(_ moments: Revocations.Moments) throws(RequestError) {
        for uid in moments.keys {
            guard let uid = String(validating: uid, as: UTF8.self), Self.lengths.contains(uid.unicodeScalars.count)
            else {
                let (least, most) = (Self.lengths.lowerBound, Self.lengths.upperBound)
                throw .invalidArgument("A user's identifier has \(least) to \(most) characters.")
            }
        }
        var failure: RequestError?
        do throws(RequestError) {
            try keep(moments)
        } catch {
            if !areInForce(moments) { throw error }
            failure = error
        }
        do throws(RequestError) {
            if let shared {
                _ = try comparison.withLock { comparison throws(RequestError) in try compare(&comparison, shared) }
            }
        } catch {
            if let failure { throw failure }
            throw RequestError(
                error.code,
                "The user's tokens are refused at this server only. The other servers learn that later: "
                    + "\(error.message)")
        }
        if let failure { throw failure }
    }

    /// Takes over what other servers have added, and adds what they lack.
    ///
    /// - Returns: of how many users tokens are refused by it that were not before.
    /// - Throws: `UNAVAILABLE`, `RESOURCE_EXHAUSTED` if the others lack revocations, `FAILED_PRECONDITION` if some
    ///   cannot be kept here. The next call tries again.
    package func takeShared() throws(RequestError) -> Int {
        guard let shared else { return 0 }
        return try comparison.withLock { comparison throws(RequestError) in
            let news = try shared.news()
            if news.isWhole { comparison.shared = [:] }
            comparison.shared.merge(news.moments, uniquingKeysWith: max)
            if news.isWhole || !news.moments.isEmpty { comparison.compared = nil }
            return try compare(&comparison, shared)
        }
    }

    /// - Returns: for how many users this server has taken something over.
    private func compare(_ comparison: inout Comparison, _ shared: any SharedRevocations) throws(RequestError) -> Int {
        // Before the comparison: what comes meanwhile is seen the next time.
        let version = revocations.version
        if comparison.compared == version { return 0 }
        let lackedThere = revocations.moments.later(than: comparison.shared)
        // The others learn of what this server cannot keep, too.
        let taken = Result { () throws(RequestError) in try add(comparison.shared) }
        if !lackedThere.isEmpty {
            try shared.add(lackedThere)
            comparison.shared.merge(lackedThere, uniquingKeysWith: max)
        }
        let count = try taken.get()
        comparison.compared = version
        return count
    }

    private func areInForce(_ moments: Revocations.Moments) -> Bool {
        moments.later(than: revocations.moments).isEmpty
    }

    private func keep(_ moments: Revocations.Moments) throws(RequestError) {
        do throws(PrincipalFault) {
            try revocations.add(moments)
        } catch {
            if !areInForce(moments) { throw RequestError(.failedPrecondition, "\(error)") }
            throw RequestError(
                .failedPrecondition,
                "The user's tokens are refused by this server, but that is not durable yet: \(error). The server tries "
                    + "again every second; do not restart it before it is kept.")
        }
    }
}

extension Revocations.Moments {
    /// Those that others lack.
    package func later(than others: Revocations.Moments) -> Revocations.Moments {
        filter { uid, moment in others[uid].map { $0 < moment } ?? true }
    }
}
