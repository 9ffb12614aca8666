// What a driver needs of the server whose member it drives, and what it reports.

package import Replication

/// Why a server must begin again from its last durable state, or without a state.
package enum RestartReason: Sendable, Equatable {
    /// Another server leads: what was staged here is dropped.
    case deposed
    /// The records after the state are trimmed: a base replaces it.
    case outdated
    /// The state is not one of the log: the database was restored, or lost commits in a failover.
    case diverged
    /// Something else was derived from a group here than at the leader: the state is discarded.
    case differs(keySpace: String, sequence: UInt64)
    /// The store has begun a new time line.
    case newTimeline
    /// The state is of another store than the database has, or records are of a later version: the server ends.
    case refused(String)
}

/// What came of applying groups.
package enum ApplyOutcome: Sendable {
    case applied
    /// A group cannot be applied.
    case impossible
    /// Something else was derived from a group than at the leader.
    case differs(keySpace: String, sequence: UInt64)
}

/// The server of a member. Calls come from the driver's thread and must not block.
package protocol MemberHost: AnyObject, Sendable {
    /// Applies groups of the log, in order, and compares what is derived from them. The completion is called once, on
    /// any thread.
    /// - Parameter areAcknowledged: the leader has sent them, so it knows that they are durable.
    func apply(
        _ groups: [LoggedGroup], areAcknowledged: Bool, completion: @escaping @Sendable (ApplyOutcome) -> Void)
    /// Hashes of what this server has derived from the records of a group; empty if they are not known.
    /// - Parameters:
    ///   - start: the version of the first record.
    ///   - end: that of the last.
    func derived(from start: UInt64, through end: UInt64) -> [UInt8]
    /// Everything up to a time is applied, and the leader makes no commit at or below it.
    func close(through time: UInt64)
    /// The server leads from now on, with versions above a time.
    func lead(_ epoch: Epoch, above time: UInt64)
    /// A time that this leader has closed, in microseconds: all commits up to it are visible, and none will come.
    var closedTime: UInt64 { get }
    /// Another server has the lease.
    func follow(_ address: String)
    /// The database has not answered for a while, or answers again.
    func noteDatabase(isAway: Bool)
    /// The server must restart. Called once; nothing else is called afterwards.
    func restart(_ reason: RestartReason)
    /// Something for the log of events.
    func note(_ event: MemberEvent)
}

/// What happens to a member.
package enum MemberEvent: Sendable {
    case connected(String)
    case connectionLost(String, reason: String)
    /// The outcome of an append is unknown, and is looked up.
    case outcomeUnknown(sequence: UInt64)
    case statementRefused(String)
    /// The lease was claimed, and is left to other servers.
    case claimGivenUp(String)
    /// Another server leads under the address of this one: calls cannot be forwarded to it.
    case addressIsTaken
    /// The machine's clock is too far from the database's, in milliseconds: this server does not lead.
    case clockDiffers(milliseconds: Int64)
    /// The machine's clock is near the database's again.
    case clockAgrees
}
