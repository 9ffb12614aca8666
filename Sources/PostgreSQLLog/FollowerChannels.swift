// The connections that the members of a loop share while they only follow: as many as there are kinds of statements,
// and not as many as there are stores.
//
//     rows      the rows of all leases in one statement; claims of several stores in one statement
//     groups    reads of groups: a part of bounded size for each member in turn
//     standby   one commit after what several members have read, which waits for the synchronous standby
//
// A member that holds a lease has separate connections: its renewals and appends wait for no other store.

internal import Basics
internal import Replication

/// Belongs to the thread of a loop.
final class FollowerChannels {
    private let rows: MemberChannel
    private let groups: MemberChannel
    private let standby: MemberChannel
    let all: [MemberChannel]

    /// Members that wait for the row of their lease, or want to claim it.
    private var asking: [MemberDriver] = []
    /// Whose rows the statement under way is for.
    private var asked: [MemberDriver] = []
    /// The next statement about rows is sent no sooner, so that one carries what many members ask.
    private var rowsAt: UInt64 = 0
    /// Members that wait for a part of their log.
    private var readers: [MemberDriver] = []
    private var reader: MemberDriver?
    /// Members that have read groups, and wait for the commit after them.
    private var confirming: [MemberDriver] = []
    private var confirmed: [MemberDriver] = []
    /// When each connection was wanted last, in milliseconds.
    private var wantedAt: [UInt64] = [0, 0, 0]
    /// Losses are reported once until the connection is open again.
    private var reported: Set<String> = []

    private static let rowsPause: UInt64 = 20
    /// A connection that nobody has wanted for so long is closed, in milliseconds.
    private static let idleMilliseconds: UInt64 = 5_000
    /// So many members may have claimed a lease without having separate connections yet: the lease ends if they are
    /// not opened in time.
    private static let claimsMax = 16

    init(_ address: String, opener: ConnectionOpener, wake: @escaping @Sendable () -> Void) {
        func channel(_ name: String, _ bounds: String, silenceMax: UInt64) -> MemberChannel {
            MemberChannel(
                name, address: address, settings: PostgreSQLSession.settings + "; " + bounds, silenceMax: silenceMax,
                opener: opener, wake: wake)
        }
        // What one store waits for must not hold up the others for longer.
        rows = channel("leases", "SET lock_timeout = 1000; SET statement_timeout = 2000", silenceMax: 2_500)
        groups = channel("logs", "SET lock_timeout = 1000; SET statement_timeout = 5000", silenceMax: 6_000)
        standby = channel("standby", "SET lock_timeout = 1000; SET statement_timeout = 5000", silenceMax: 6_000)
        all = [rows, groups, standby]
    }

    // MARK: What members ask for

    /// The member waits for the row of its lease, or for a claim.
    func ask(_ member: MemberDriver) { asking.append(member) }

    /// The member waits for a part of its log, or for the commit after it.
    func read(_ member: MemberDriver) {
        if member.waitsForStandby { confirming.append(member) } else { readers.append(member) }
    }

    /// The member has left the loop, or has ended.
    func forget(_ member: MemberDriver) {
        func remove(_ members: inout [MemberDriver]) { members.removeAll { $0 === member } }
        remove(&asking)
        remove(&asked)
        remove(&readers)
        remove(&confirming)
        remove(&confirmed)
        if reader === member { reader = nil }
    }

    // MARK: A turn

    /// Does what is due.
    /// - Parameter members: those of the loop.
    func turn(_ now: UInt64, _ members: [MemberDriver]) {
        for index in all.indices { keep(index, now, members) }
        sendRows(now, members)
        sendRead(members)
        sendConfirmation(members)
    }

    /// When the next turn is due by itself, in milliseconds.
    var dueAt: UInt64 {
        // Claims may wait for others to end.
        var due = !asking.isEmpty && rows.isIdle ? rowsAt : UInt64.max
        for (index, channel) in all.enumerated() {
            if channel.isOpen {
                due = min(due, channel.dueAt, wantedAt[index] + Self.idleMilliseconds + 1)
            } else if isWanted(channel) {
                due = min(due, channel.dueAt)
            }
        }
        return due
    }

    private func isWanted(_ channel: MemberChannel) -> Bool {
        if channel === rows { return !asking.isEmpty || !asked.isEmpty }
        if channel === groups { return !readers.isEmpty || reader != nil }
        return !confirming.isEmpty || !confirmed.isEmpty
    }

    private func keep(_ index: Int, _ now: UInt64, _ members: [MemberDriver]) {
        let channel = all[index]
        let isWanted = isWanted(channel)
        if isWanted { wantedAt[index] = now }
        if now > wantedAt[index] + Self.idleMilliseconds { return channel.close() }
        if isWanted || channel.isInUse, let event = channel.tick(now) { handle(event, of: channel, members) }
    }

    private func sendRows(_ now: UInt64, _ members: [MemberDriver]) {
        guard rows.isIdle, now >= rowsAt, !asking.isEmpty else { return }
        rowsAt = now + Self.rowsPause
        var room = max(Self.claimsMax - members.count(where: \.isSettling), 0)
        var waiting: [MemberDriver] = []
        for member in asking {
            guard let isClaim = member.wantsToClaim else { continue }
            if isClaim, room == 0 {
                waiting.append(member)
            } else {
                asked.append(member)
                room -= isClaim ? 1 : 0
            }
        }
        asking = waiting
        guard !asked.isEmpty else { return }
        let statements = asked.compactMap { member in
            member.leaseStatement.map { (tables: member.settings.tables, statement: $0) }
        }
        send(StoreTables.rows(statements), on: rows, members)
    }

    private func sendRead(_ members: [MemberDriver]) {
        guard groups.isIdle, reader == nil, !readers.isEmpty else { return }
        let next = readers.removeFirst()
        guard let statement = next.logSQL else { return sendRead(members) }
        reader = next
        send(statement, on: groups, members)
    }

    private func sendConfirmation(_ members: [MemberDriver]) {
        guard standby.isIdle, confirmed.isEmpty, !confirming.isEmpty else { return }
        swap(&confirmed, &confirming)
        let places = confirmed.map { member in
            (tables: member.settings.tables, place: member.member.place, end: member.confirmedEnd)
        }
        send(confirmed[0].settings.tables.confirmation(of: places), on: standby, members)
    }

    private func send(_ statement: SQLStatement, on channel: MemberChannel, _ members: [MemberDriver]) {
        if let event = channel.send(statement) { handle(event, of: channel, members) }
    }

    // MARK: Replies

    /// - Parameter members: those of the loop.
    func handle(_ event: PostgreSQLConnection.Event, of channel: MemberChannel, _ members: [MemberDriver]) {
        switch event {
        case .opened:
            reported.remove(channel.name)
            for member in members { member.note(.connected(channel.name)) }
        case .finished(let outcome):
            channel.noteReply()
            if channel === rows {
                takeRows(outcome)
            } else {
                for member in waiting(for: channel) { member.takeSharedLog(outcome) }
            }
        case .ended(let reason):
            _ = channel.noteEnd(BootClock.milliseconds())
            if reported.insert(channel.name).inserted {
                for member in members { member.note(.connectionLost(channel.name, reason: reason)) }
            }
            for member in waiting(for: channel) {
                channel === rows ? member.loseLease() : member.loseLog()
                member.dueAt = 0
            }
        }
    }

    /// The members whose statement was under way, which is over.
    private func waiting(for channel: MemberChannel) -> [MemberDriver] {
        if channel === groups {
            defer { reader = nil }
            return reader.map { [$0] } ?? []
        }
        if channel === standby {
            defer { confirmed = [] }
            return confirmed
        }
        defer { asked = [] }
        return asked
    }

    private func takeRows(_ outcome: SQLOutcome) {
        let members = waiting(for: rows)
        guard case .rows(let found, let hasWarning) = outcome else {
            for member in members { member.takeSharedLease(outcome) }
            return
        }
        let byName = Dictionary(found.map { ($0.text(StoreTables.rowsNameColumn), $0) }) { first, _ in first }
        for member in members {
            let row = byName[member.settings.tables.name]
            let columns = row.map { [SQLRow(columns: Array($0.columns.prefix(StoreTables.rowsNameColumn)))] } ?? []
            member.takeSharedLease(.rows(columns, hasWarning: hasWarning))
        }
    }
}
