// Groups that come over the stream of the server that leads.

internal import Basics
package import Replication

/// Groups of the leader's stream on their way to the member.
struct StreamedGroups {
    let groups: [LoggedGroup]
    /// The last group that the stream had before; 0 if that does not matter.
    let sequenceBefore: UInt64
    /// A time that the leader closed after the groups, in microseconds; 0 for none.
    let closed: UInt64
    let completion: @Sendable (Bool) -> Void
}

extension MemberDriver {
    /// What a stream from the leader has to begin after.
    package var streamStart: LogPlace { state.figures.place }

    /// Applies groups that the leader has sent, if they continue what this server has. Any thread.
    ///
    /// - Parameters:
    ///   - groups: in order; may be none.
    ///   - sequenceBefore: the last group that the stream had before them, whether it was taken or not.
    ///   - closed: a time that the leader closed after all of them, in microseconds; 0 for none.
    ///   - completion: called once, on any thread: false if the stream does not continue what is here.
    package func receive(
        _ groups: [LoggedGroup], after sequenceBefore: UInt64, closed: UInt64,
        completion: @escaping @Sendable (Bool) -> Void
    ) {
        let (isTaken, wakes) = inbox.withLock { inbox in
            if inbox.isClosed { return (false, false) }
            inbox.streamed.append(
                StreamedGroups(
                    groups: groups, sequenceBefore: sequenceBefore, closed: closed, completion: completion))
            return (true, !inbox.isApplying)
        }
        if wakes { wake() }
        if !isTaken { completion(false) }
    }

    /// The leader's stream has ended. Any thread.
    package func endStream() {
        inbox.withLock { $0.hasStreamEnded = true }
        wake()
    }

    /// Hands on what came over the stream, when nothing else is being applied.
    func takeStreamed() {
        guard !isApplying, logActions.isEmpty else { return }
        let now = BootClock.milliseconds()
        let (streamed, streamHasEnded) = inbox.withLock { inbox in
            defer { (inbox.streamed, inbox.hasStreamEnded) = ([], false) }
            return (inbox.streamed, inbox.hasStreamEnded)
        }
        if !streamed.isEmpty { take(streamed, now: now) }
        if streamHasEnded { member.streamEnded(now: now) }
    }

    /// Applies together what came while something else was applied.
    private func take(_ streamed: [StreamedGroups], now: UInt64) {
        let groups = streamed.flatMap(\.groups)
        let end = groups.last?.header.sequence ?? 0
        // A time is not closed here without the groups before it: some may have been refused a moment ago.
        guard streamed.allSatisfy({ $0.sequenceBefore <= max(end, member.place.sequence) }),
            let actions = member.receive(streamed: groups.map(\.header), now: now)
        else { return streamed.complete(false) }
        // Groups come before the times that are closed after them, so the last time is after all groups.
        let closed = streamed.reduce(0) { max($0, $1.closed) }
        if closed > 0 { state.change { $0.closed = max($0.closed, closed) } }
        guard !actions.isEmpty else {
            if closed > 0 { host.close(through: closed) }
            return streamed.complete(true)
        }
        for group in groups { readGroups[group.header.sequence] = group }
        state.change { $0.groupsStreamed += UInt64(groups.count) }
        closedRead = closed
        streamedApplying = streamed
        perform(actions)
    }

    /// Nothing of the stream is taken any more.
    func dropStreamed() {
        let waiting = inbox.withLock { inbox in
            defer { inbox.streamed = [] }
            return inbox.streamed
        }
        streamedApplying.complete(false)
        streamedApplying = []
        waiting.complete(false)
    }
}

extension [StreamedGroups] {
    /// Reports whether they were taken.
    func complete(_ isTaken: Bool) {
        for streamed in self { streamed.completion(isTaken) }
    }
}
