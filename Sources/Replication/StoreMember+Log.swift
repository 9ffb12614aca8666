// The groups: appending one at a time, those of others from the log or the leader's stream, and what becomes of an
// append without a reply.

extension StoreMember {
    /// Whether a group can be appended now.
    package var canAppend: Bool { role == .leading && inFlight == nil && logRequest == nil }

    /// Appends a group. Call it when ``canAppend``.
    /// - Parameters:
    ///   - version: of its last commit, from ``takeVersion(wallMicroseconds:)``.
    ///   - contentHash: see ``GroupHeader/contentHash``.
    package mutating func append(version: UInt64, contentHash: UInt64) -> [MemberAction] {
        guard canAppend, let store else { preconditionFailure("a group is appended by a leader, one at a time") }
        return send(
            GroupHeader(store: store, epoch: epoch, after: place, version: version, contentHash: contentHash))
    }

    private mutating func send(_ group: GroupHeader) -> [MemberAction] {
        inFlight = group
        logRequest = .append(group)
        return [.send(.append(group))]
    }

    /// The statement that is due now, if any.
    func nextRead(now: UInt64) -> LogStatement? {
        guard let nextReadDue, now >= nextReadDue else { return nil }
        return .read(after: place)
    }

    /// Has the next read of a server that follows wait until a time.
    package mutating func postponeRead(until time: UInt64) {
        if role == .following { readDue = max(readDue, time) }
    }

    /// When the log is to be read next, in milliseconds; nil if it is not.
    var nextReadDue: UInt64? {
        guard logRequest == nil, store != nil else { return nil }
        switch role {
        case .following: return max(readDue, streamedUntil)
        case .catchingUp, .lookingUp: return readDue
        case .leading: return mustCompare && inFlight == nil ? readDue : nil
        case .raising, .stopped: return nil
        }
    }

    /// Takes the reply to the last statement about the groups.
    package mutating func receive(_ reply: LogReply, now: UInt64) -> [MemberAction] {
        guard let sent = logRequest else { return [] }
        logRequest = nil
        readDue = now + timing.readMilliseconds
        switch sent {
        case .append(let group): return receive(reply, to: group, now: now)
        case .read(let after): return receive(reply, after: after, now: now)
        }
    }

    /// The connection of the last statement about the groups has ended before its reply.
    package mutating func logConnectionEnded(now: UInt64) {
        let sent = logRequest
        logRequest = nil
        readDue = now
        // Dropped already, if the lease was lost meanwhile.
        if case .append(let group)? = sent, group == inFlight {
            role = .raising
            leaseDue = now
        }
    }

    /// A connection was opened: maybe to a standby that has taken over, and lacks the last group or has another one. A
    /// leader compares that, whether or not it has something to append.
    package mutating func connectionOpened(now: UInt64) {
        guard role == .leading else { return }
        mustCompare = true
        readDue = now
    }

    // MARK: The leader's stream

    /// Takes groups that the server that leads has sent after they were durable, some or none.
    /// - Returns: nil if they are not taken, because this server does not follow or lacks groups before them. Then the
    ///   log is read.
    package mutating func receive(streamed groups: [GroupHeader], now: UInt64) -> [MemberAction]? {
        guard role == .following, store != nil else { return nil }
        let news = groups.drop { $0.sequence <= place.sequence }
        var end = place
        for group in news {
            guard group.follows(end) else {
                streamEnded(now: now)
                return nil
            }
            end = group.place
        }
        place = end
        streamedUntil = now + timing.streamMilliseconds
        return news.isEmpty ? [] : [.apply(Array(news))]
    }

    /// No groups are expected from a stream any more: the log is read.
    package mutating func streamEnded(now: UInt64) {
        streamedUntil = 0
        readDue = now
    }

    /// Whether groups are expected from the leader's stream.
    package func isStreaming(now: UInt64) -> Bool { role == .following && now < streamedUntil }

    // MARK: Replies

    private mutating func receive(_ reply: LogReply, to group: GroupHeader, now: UInt64) -> [MemberAction] {
        // The lease was lost meanwhile; what became of the group will be read.
        guard inFlight == group else { return [] }
        guard case .appended = reply else { return stepDown(now: now) }
        return acknowledge(group)
    }

    private mutating func acknowledge(_ group: GroupHeader) -> [MemberAction] {
        inFlight = nil
        place = group.place
        return [.acknowledge(group)]
    }

    private mutating func receive(_ reply: LogReply, after: LogPlace, now: UInt64) -> [MemberAction] {
        defer { mustReadAgain = false }
        switch reply {
        case .appended, .epochDiffers, .chainDiffers: return []
        case .groups(let groups, let isAll):
            let isCurrent = !mustReadAgain && after == place
            if !isCurrent || !isAll { readDue = now }
            guard after == place else { return [] }
            if role == .lookingUp { return resolve(groups) }
            if role == .leading { return compare(groups, isEnd: isCurrent && isAll, now: now) }
            return take(groups, isEnd: isCurrent && isAll, now: now)
        case .trimmed(let base):
            readDue = now
            guard after == place else { return [] }
            // A leader has everything that a base of its store can have.
            if role == .leading { return discard(now: now) }
            place = base
            return [.loadBase(base)]
        case .placeDiffers: return discard(now: now)
        }
    }

    /// Applies groups that were read, and leads after the last if this server has the lease.
    private mutating func take(_ groups: [GroupHeader], isEnd: Bool, now: UInt64) -> [MemberAction] {
        for group in groups {
            guard group.follows(place) else { return discard(now: now) }
            place = group.place
        }
        var actions: [MemberAction] = groups.isEmpty ? [] : [.apply(groups)]
        if role == .catchingUp, isEnd {
            role = .leading
            actions.append(.lead(epoch))
        }
        return actions
    }

    /// The log has the last group of this leader, and must have nothing after it.
    private mutating func compare(_ groups: [GroupHeader], isEnd: Bool, now: UInt64) -> [MemberAction] {
        guard groups.isEmpty else { return stepDown(now: now) }
        if isEnd { mustCompare = false }
        return []
    }

    /// The state is not one of this log: the database was restored to an earlier time, or this server had applied what
    /// a primary lost that failed over.
    private mutating func discard(now: UInt64) -> [MemberAction] {
        var actions = stepDown(now: now)
        place = .start
        seen = nil
        actions.append(.discardState)
        return actions
    }

    /// Decides about the group in flight: no append of an earlier epoch can be executed any more.
    private mutating func resolve(_ groups: [GroupHeader]) -> [MemberAction] {
        guard let group = inFlight, let store else { return [] }
        role = .leading
        if let first = groups.first, first.follows(place), first.hasContents(of: group) { return acknowledge(first) }
        return send(
            GroupHeader(
                store: store, epoch: epoch, after: place, version: group.version, contentHash: group.contentHash))
    }
}
