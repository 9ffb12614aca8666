// The groups: appending, reading and applying them.

internal import Basics
internal import Replication
internal import Storage

/// A read of groups that may take several statements.
struct LogReading {
    let after: LogPlace
    /// The table of the last statement.
    var table: UInt64
    var rows = LogRows()
    var rowsMax: Int
    /// No further row is read after so many bytes of records.
    var bytesMax = StoreTables.bytesReadMax
    var step = Step.groups

    enum Step {
        case groups
        /// A table or a row is missing: the base decides whether it was trimmed.
        case base
        /// The table is of an earlier version, and lacks a column.
        case upgrade
        /// The groups are there. Whether a synchronous standby has them too is shown by a commit after them.
        case standby(isAll: Bool)
    }
}

/// What the connection for the groups is doing beside the statement itself.
extension MemberDriver {
    /// Does the next actions about the groups.
    func pump() {
        while !isApplying, !hasEnded, !logActions.isEmpty {
            switch logActions.removeFirst() {
            case .ask: break
            case .send(let statement): begin(statement)
            case .apply(let groups): apply(groups)
            case .acknowledge(let group): acknowledge(group)
            case .lead(let epoch): lead(epoch)
            case .dropStaged: end(.deposed)
            case .loadBase: end(.outdated)
            case .discardState: end(.diverged)
            case .stop(.otherStore): end(.refused("the database has another store than this directory"))
            }
        }
    }

    private func begin(_ statement: LogStatement) {
        logStatement = statement
        if case .read(let place) = statement {
            reading = LogReading(
                after: place, table: StoreTables.tableNumber(of: max(place.sequence, 1)),
                rowsMax: StoreTables.rowsReadMax)
        }
        readsShared = !ownsConnections
        sendRead()
    }

    /// Sends the next statement about the groups, or has it sent when it is the member's turn.
    private func sendRead() {
        if readsShared { settings.loop.followers.read(self) } else if log.isIdle { sendLog() }
    }

    private func apply(_ headers: [GroupHeader]) {
        let groups = headers.compactMap { readGroups[$0.sequence] }
        readGroups.removeAll()
        precondition(groups.count == headers.count, "groups are applied that were not read")
        for group in groups {
            places.note(group.header.place)
            recent.note(group)
        }
        if let last = headers.last { readVersion.store(last.version, ordering: .releasing) }
        state.change { $0.groupsApplied += UInt64(headers.count) }
        isApplying = true
        host.apply(groups, areAcknowledged: !streamedApplying.isEmpty) { [self] outcome in
            inbox.withLock { $0.applied = outcome }
            wake()
        }
    }

    private func acknowledge(_ group: GroupHeader) {
        places.note(group.place)
        if let appending { recent.note(appending.group(group)) }
        let bytes = UInt64(appending?.records.count ?? 0)
        state.change { figures in
            figures.groupsAppended += 1
            figures.bytesAppended += bytes
        }
        state.appendNanoseconds.record(SystemClock.monotonicNanoseconds() - appendStarted)
        finishAppend(.success(()))
    }

    private func lead(_ epoch: Epoch) {
        // The first renewal raises the ceiling; no time is given out before.
        state.update(member)
        state.willLead()
        host.lead(epoch, above: member.issued)
        state.set(leads: true)
    }

    /// Appends the group that waits, if the member can.
    func appendIfPossible() {
        guard appending == nil, !isApplying, member.canAppend, state.isLeading else { return }
        guard var pending = inbox.withLock({ $0.append }) else { return }
        // A version above the ceiling waits for the renewal that raises it.
        member.noteIssued(pending.version)
        guard pending.version <= member.ceiling else { return }
        pending.derived = host.derived(from: LoggedGroup.firstVersion(pending.records), through: pending.version)
        appending = pending
        appendStarted = SystemClock.monotonicNanoseconds()
        perform(member.append(version: pending.version, contentHash: LoggedGroup.contentHash(pending.records)))
    }

    // MARK: Statements

    func sendLog() {
        guard !readsShared, let sql = logSQL else { return }
        if let event = log.send(sql) { handle(event, of: log) }
    }

    /// What is to be sent for the statement about the groups; nil if there is none.
    var logSQL: SQLStatement? {
        switch logStatement {
        case .append(let header)?:
            guard let appending else { return nil }
            if mustCreateTable { return settings.tables.creation(of: header.sequence, in: header.epoch) }
            return settings.tables.append(appending.group(header), &appendText)
        case .read(let place)?: return reading.map { sql(for: $0, after: place) }
        case nil: return nil
        }
    }

    private func sql(for reading: LogReading, after place: LogPlace) -> SQLStatement {
        let tables = settings.tables
        switch reading.step {
        case .base: return tables.lastBaseAndEpoch
        case .upgrade: return StoreTables.upgrade(tables.table(reading.table))
        case .standby: return tables.confirmation(of: [(tables, member.place, confirmedEnd)])
        case .groups:
            let isFirst = reading.table == StoreTables.tableNumber(of: max(place.sequence, 1))
            let skips = isFirst && place.sequence > 0
            return tables.read(
                table: reading.table, from: skips ? place.sequence : place.sequence + 1, skipsFirst: skips,
                rowsMax: reading.rowsMax, bytesMax: reading.bytesMax)
        }
    }

    func takeLog(_ outcome: SQLOutcome) {
        switch logStatement {
        case .append?: takeAppend(outcome)
        case .read?: takeRead(outcome)
        case nil: break
        }
    }

    /// The connection for the groups has ended: an append may have been executed.
    /// - Parameter pause: before a member that does not lead reads again, in milliseconds.
    func loseLog(pause: UInt64 = 100) {
        let wasLeader = member.isLeader
        if case .append(let header)? = logStatement, !mustCreateTable {
            if unknownReport.isDue("\(header.sequence)", at: BootClock.milliseconds()) {
                host.note(.outcomeUnknown(sequence: header.sequence))
            }
            state.change { $0.outcomesUnknown += 1 }
        }
        logStatement = nil
        reading = nil
        readsShared = false
        (mustCreateTable, hasCreatedTable) = (false, false)
        member.logConnectionEnded(now: BootClock.milliseconds() + (wasLeader ? 0 : pause))
    }

    private func reply(_ reply: LogReply) {
        hasCreatedTable = false
        logStatement = nil
        reading = nil
        readsShared = false
        perform(member.receive(reply, now: BootClock.milliseconds()))
    }

    private func takeAppend(_ outcome: SQLOutcome) {
        switch outcome {
        case .rows(let rows, let hasWarning):
            if hasWarning { return giveUpLog("the commit was not waited for") }
            if mustCreateTable {
                (mustCreateTable, hasCreatedTable) = (false, true)
                return sendLog()
            }
            reply(settings.tables.appendReply(rows))
        case .failed(let failure) where (failure.isMissingTable || failure.isMissingColumn) && !mustCreateTable:
            // It is the table of the group before: the database was restored, or a standby that lacked it took over.
            if hasCreatedTable { return reply(.chainDiffers) }
            mustCreateTable = true
            sendLog()
        case .failed(let failure) where failure.isDivisionByZero && mustCreateTable:
            mustCreateTable = false
            reply(.epochDiffers)
        case .failed(let failure) where failure.isDuplicate && !mustCreateTable:
            reply(.chainDiffers)
        case .failed(let failure):
            // Nothing was appended, but the way of an unknown outcome is right too, and it waits.
            noteRefusal(failure.description, of: log)
            giveUpLog("an append was refused")
        }
    }

    /// Ends the connection after a reply that does not tell the outcome: that of the statement is unknown. The outcome
    /// of a read does not matter, and a shared connection stays.
    private func giveUpLog(_ reason: String) {
        if readsShared { return loseLog(pause: 1_000) }
        log.connection?.close()
        noteEnd(of: log, reason)
        loseLog()
    }

    private func takeRead(_ outcome: SQLOutcome) {
        guard var current = reading else { return }
        switch (outcome, current.step) {
        case (.failed(let failure), .groups) where failure.isMissingTable:
            let isFirst = current.table == StoreTables.tableNumber(of: max(current.after.sequence, 1))
            if !isFirst { return finishRead(current, isAll: true) }
            current.step = .base
        case (.failed(let failure), .groups) where failure.isMissingColumn:
            current.step = .upgrade
        case (.failed(let failure), .standby) where failure.isMissingTable: return giveUpUnconfirmed()
        case (.failed(let failure), _):
            noteUnreadable(failure.description)
            return giveUpLog("a read was refused")
        case (.rows, .upgrade): current.step = .groups
        case (.rows(let rows, let hasWarning), .standby(let isAll)):
            if hasWarning { return giveUpLog("no standby has confirmed what was read") }
            guard rows.contains(where: { $0.text(0) == settings.tables.name }) else { return giveUpUnconfirmed() }
            return acceptRead(current, isAll: isAll)
        case (.rows(let rows, _), .base):
            guard isOfLease(epoch: StoreTables.epoch(besideBase: rows)) else { return giveUpOtherDatabase() }
            noteReadable()
            return reply(Self.replyWithoutRows(after: current.after, base: BaseRow(rows)))
        case (.rows(let rows, _), .groups):
            let isFirst = current.table == StoreTables.tableNumber(of: max(current.after.sequence, 1))
            let problem = current.rows.add(
                rows, after: current.after, store: settings.store, rowsMax: current.rowsMax, bytesMax: current.bytesMax)
            if let problem {
                noteUnreadable(problem)
                return giveUpLog("the log is damaged")
            }
            guard isOfLease(epoch: current.rows.epoch) else { return giveUpOtherDatabase() }
            if isFirst, current.after.sequence > 0, current.rows.placeHash == nil {
                current.step = .base
            } else if current.rows.isCut {
                if current.rows.groups.isEmpty, current.rows.piecesMissing > 0 {
                    // One group is larger than what is read at once.
                    current.rowsMax = max(current.rowsMax, current.rows.piecesMissing + 1)
                    current.bytesMax = .max
                    current.rows = LogRows()
                } else {
                    return finishRead(current, isAll: false)
                }
            } else {
                let last = current.rows.groups.last?.header.sequence ?? current.after.sequence
                guard last % StoreTables.groupsPerTable == 0, last > 0,
                    StoreTables.tableNumber(of: last + 1) > current.table
                else { return finishRead(current, isAll: true) }
                // The table is complete: what comes next is in the one after it.
                guard current.rows.groups.isEmpty else { return finishRead(current, isAll: false) }
                current.table += 1
            }
        }
        reading = current
        sendRead()
    }

    /// The log has no row of a place.
    private static func replyWithoutRows(after place: LogPlace, base: BaseRow?) -> LogReply {
        if let base, base.place.sequence > place.sequence { return .trimmed(base: base.place) }
        return place.sequence == 0 ? .groups([], isAll: true) : .placeDiffers
    }

    /// Ends a read. A server that follows applies only what outlives the loss of the primary: the primary may have
    /// groups that its synchronous standby lacks, after a wait for the standby was cut off. A commit of this server
    /// after them, where they are, waits for the standby to have them.
    private func finishRead(_ current: LogReading, isAll: Bool) {
        if current.after.sequence > 0, let hash = current.rows.placeHash, hash != current.after.hash {
            return reply(.placeDiffers)
        }
        // It was begun as a follower, and nothing confirms it any more: the holder of the lease reads by itself.
        if readsShared, member.role.isOfHolder { return reply(.groups([], isAll: false)) }
        guard member.role == .following, !current.rows.groups.isEmpty, current.after == member.place else {
            return acceptRead(current, isAll: isAll)
        }
        reading = current
        reading?.step = .standby(isAll: isAll)
        sendRead()
    }

    /// Whether a read shows the log in the epoch of the lease that this server holds. The connection for the log may
    /// lead to another server of the database than that for the lease: to a primary of the past, which may have other
    /// groups.
    /// - Parameter epoch: of the store's row, read with the log; nil if it is not there.
    private func isOfLease(epoch: UInt64?) -> Bool {
        readsShared || !member.role.isOfHolder || epoch == member.epoch.number
    }

    private func giveUpOtherDatabase() {
        noteUnreadable("the connection for the log does not see the lease of this server")
        giveUpLog("the database may be another one than that of the lease")
    }

    /// The last group that was read and is to be confirmed.
    var confirmedEnd: LogPlace { reading?.rows.groups.last?.header.place ?? member.place }

    /// The connection for the commit leads to a database that lacks what was read: the primary where that was read is
    /// replaced, and its standby did not have it.
    private func giveUpUnconfirmed() {
        noteRefusal("the database does not have what was read of the log", of: log)
        giveUpLog("what was read is not confirmed")
    }

    /// The log could not be read: a server that does not get to its end cannot lead. The same reason is reported once.
    private func noteUnreadable(_ reason: String) {
        if reason != unreadableReason { host.note(.statementRefused(reason)) }
        unreadableReason = reason
        if unreadableSince != nil { return }
        unreadableSince = BootClock.milliseconds()
        state.change { $0.isLogUnreadable = true }
    }

    private func noteReadable() {
        guard unreadableSince.take() != nil else { return }
        unreadableReason = ""
        state.change { $0.isLogUnreadable = false }
    }

    private func acceptRead(_ current: LogReading, isAll: Bool) {
        noteReadable()
        // Groups of the stream may have come meanwhile, and are being applied.
        guard current.after == member.place else { return reply(.groups([], isAll: false)) }
        readGroups = Dictionary(uniqueKeysWithValues: current.rows.groups.map { ($0.header.sequence, $0) })
        closedRead = isAll ? current.rows.closed : 0
        state.change { $0.closed = max($0.closed, current.rows.closed) }
        let (hasGroups, wasShared) = (!current.rows.groups.isEmpty, readsShared)
        reply(.groups(current.rows.groups.map(\.header), isAll: isAll))
        if wasShared, !hasGroups, isAll {
            member.postponeRead(until: BootClock.milliseconds() + settings.loop.lookMilliseconds)
        }
        if !hasGroups, isAll, !hasEnded, !state.isLeading {
            host.close(through: closedRead)
            closedRead = 0
        }
    }
}
