// What a leader gives its followers, and what a follower does with it.
//
//     leader     closed time T ──► records up to T ──► T
//     follower   records ──► commit thread: applied, logged, synced, published ──► T: reads up to T
//
// A follower applies records with the code of recovery and has the same keys, values and versions as its leader. It
// decides nothing: no commits of clients, no expiry, no index builds, no end of sessions; all of that comes as records.

package import Basics
package import CommitLog
internal import DocumentModel
package import Storage
internal import StorageEngines

extension DocumentStore {
    /// The version of the last commit that is durable and visible.
    package var publishedVersion: CommitVersion { engine.publishedVersion }

    /// The time from which the history is that of this store alone.
    package var timelineStart: CommitVersion { engine.timelineStart }

    // MARK: Leaders

    /// The durable records after a version, for one thread.
    ///
    /// A time of ``currentReadTime`` is closed for the records that are found after it was taken: none comes later with
    /// a version at or below it.
    /// - Throws: `unsupported` for a store without files.
    package func records(after version: CommitVersion) throws(StorageError) -> LogRecords {
        try engine.records(after: version)
    }

    /// Keeps the records after a version for a follower, up to `EngineOptions.logFollowedBytesMax`, until ten minutes
    /// after ``endHold(of:stream:)``.
    ///
    /// - Parameters:
    ///   - follower: a number that the follower has chosen.
    ///   - stream: a number of ``ReplicationState/makeStreamNumber()``. The last stream to the follower counts.
    package func holdRecords(after version: CommitVersion, for follower: UInt64, stream: UInt64) {
        engine.hold(.follower(follower), stream: stream, after: version)
    }

    /// A stream to the follower has ended.
    package func endHold(of follower: UInt64, stream: UInt64) {
        engine.leave(.follower(follower), stream: stream)
    }

    /// Takes no writes from now on, because another server does. The completion is called once, on a thread of the
    /// store, when all commits before are durable and visible: with the version of the last of them.
    ///
    /// The version is above all times that the store has given out. It gives out no later one, since the other server
    /// makes commits there: a listener that comes to it with such a time would miss them.
    ///
    /// - Parameters:
    ///   - successor: the number of the other server. If a server of another number has the place already, the
    ///     completion gets `FAILED_PRECONDITION`. If the last commit cannot be made, for example since the disk is
    ///     full, it gets that error, and the store takes writes as before.
    package func stepDown(
        for successor: UInt64, completion: @escaping @Sendable (Result<CommitVersion, RequestError>) -> Void
    ) {
        // Everything that was queued before comes before it, and is refused or staged.
        submit(
            .stepDown(successor) { [engine] result in
                completion(result.map { engine.publishedVersion })
            })
    }

    // MARK: Followers

    /// Why this store takes no writes; nil unless it follows another server.
    var refusal: RequestError? { standing.refusal }

    /// How old the state of a replica is by this machine's clock, in microseconds; 0 for a store that is none. A clock
    /// that is late does not make it younger than the last time that was closed here.
    package var lagMicroseconds: UInt64 {
        if standing.takesWrites { return 0 }
        let clock = configuration.clock
        let closed = replication.closedTime
        let (now, elapsed) = (clock.nowMicroseconds, clock.elapsedMilliseconds)
        let reached = max(closed.microseconds, engine.publishedVersion.microseconds)
        let sinceClosed = closed.microseconds > 0 && elapsed > closed.takenAt ? (elapsed - closed.takenAt) * 1_000 : 0
        return max(now > reached ? now - reached : 0, sinceClosed)
    }

    // MARK: Servers that may lead

    /// Why a strict read is not answered; nil if it is. To be asked after the version that is read was chosen.
    package var strictReadRefusal: RequestError? { standing.leaseRefusal }

    /// The same for a read that may be one of a follower.
    ///
    /// - Parameter isStrict: the leader was asked for its newest commit, and it is visible here.
    func newestReadRefusal(isStrict: Bool) -> RequestError? {
        if isStrict, replication.mayBeBeforeLeader {
            return RequestError(.unavailable, "This server is catching up with its leader; try again.")
        }
        return strictReadRefusal
    }

    /// This server takes writes from now on. All records of earlier leaders are applied and visible.
    /// - Parameter time: commits get versions above it, in microseconds.
    package func lead(above time: UInt64) {
        versions.lead(above: time)
        standing.accept()
        queue.wake()
    }

    /// This server takes no writes, because another one leads. One that led before waits for nothing of its successor,
    /// and must be closed and opened again.
    /// - Parameter address: of the leader; nil while there is none.
    package func follow(leader address: String?) {
        let place = address.map { "write to \($0)" } ?? "no server leads now; try again"
        let message = "This server of the cluster does not lead and takes no writes; \(place)."
        standing.refuse(RequestError(.unavailable, message))
        versions.stopLeading()
    }

    /// Whether the log cannot be reached: further commits are refused, and those that were taken wait.
    package var isCutOff: Bool {
        get { standing.isCutOff }
        set { standing.isCutOff = newValue }
    }

    /// Ends a store that follows another server with a commit above all times that reads of it may have had, whatever
    /// the clock of this machine says. It takes no writes after that; a store that is opened of its directory does.
    /// Blocks.
    ///
    /// - Parameter time: in microseconds since 1970.
    /// - Throws: what a commit does, for example on a full disk.
    package func endFollowing(above time: UInt64) throws(RequestError) {
        lead(above: time)
        let outcome = Monitor<Result<CommitVersion, RequestError>?>(nil)
        stepDown(for: 0) { result in outcome.update { $0 = result } }
        _ = try outcome.wait { $0 }.get()
    }

    /// The latest time that the server which this store follows has given out, in microseconds since 1970, as far as
    /// it is known here; 0 for a store that takes writes.
    package var latestLeaderTime: UInt64 { standing.takesWrites ? 0 : currentReadTime }

    // MARK: Following

    /// Applies records of the leader. The completion is called once, on a thread of the store, when they are durable
    /// and visible. Those that were applied before change nothing, so a repetition is harmless.
    ///
    /// It fails with `DATA_LOSS` if a record cannot be applied, and as commits do if storage fails.
    package func follow(
        _ records: FollowedRecords, completion: @escaping @Sendable (Result<Void, RequestError>) -> Void
    ) {
        precondition(configuration.leader != nil, "records are applied by a store that follows another server")
        submit(.follow(records, completion))
    }

    /// Makes the store readable up to a time, in microseconds: the leader has closed it, and everything up to it was
    /// applied.
    package func closeTimes(through time: UInt64) {
        versions.close(time)
        changes.announce(through: time, lastEnd: databases.lastEnd)
        replication.noteClosed(time, atMilliseconds: configuration.clock.elapsedMilliseconds)
    }
}

extension StorageError {
    /// A follower cannot build indexes: it decides nothing.
    static func entriesDroppedOnFollower(_ directory: String) -> StorageError {
        StorageError(
            .refused, "the index entries of a replica were dropped", file: directory,
            remedy: "remove the directory, and the replica copies everything from its leader again")
    }
}
