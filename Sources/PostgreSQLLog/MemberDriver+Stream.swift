// Groups that come over the stream of the server that leads.

internal import Basics
package import Replication

/// Groups of the leader's stream on their way to the member.
struct StreamedGroups {
    let groups: [LoggedGroup]
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
    ///   - closed: a time that the leader closed after them, in microseconds; 0 for none.
    ///   - completion: called once, on any thread: false if the stream does not continue what is here.
    package func receive(
        _ groups: [LoggedGroup], closed: UInt64, completion: @escaping @Sendable (Bool) -> Void
    ) {
        let isTaken = inbox.update { inbox in
            if inbox.isClosed { return false }
            inbox.streamed.append(StreamedGroups(groups: groups, closed: closed, completion: completion))
            return true
        }
        isTaken ? wake() : completion(false)
    }

    /// The leader's stream has ended. Any thread.
    package func endStream() {
        inbox.update { $0.hasStreamEnded = true }
        wake()
    }

    /// Hands on what came over the stream, when nothing else is being applied.
    func takeStreamed() {
        let now = BootClock.milliseconds()
        let hasEnded = inbox.withLock { inbox in
            defer { inbox.hasStreamEnded = false }
            return inbox.hasStreamEnded
        }
        if hasEnded { member.streamEnded(now: now) }
        while !isApplying, logActions.isEmpty, let next = nextStreamed() {
            guard let actions = member.receive(streamed: next.groups.map(\.header), now: now) else {
                next.completion(false)
                continue
            }
            if next.closed > 0 { state.change { $0.closed = max($0.closed, next.closed) } }
            guard !actions.isEmpty else {
                if next.closed > 0 { host.close(through: next.closed) }
                next.completion(true)
                continue
            }
            for group in next.groups { readGroups[group.header.sequence] = group }
            state.change { $0.groupsStreamed += UInt64(next.groups.count) }
            closedRead = next.closed
            streamCompletion = next.completion
            perform(actions)
        }
    }

    private func nextStreamed() -> StreamedGroups? {
        inbox.withLock { $0.streamed.isEmpty ? nil : $0.streamed.removeFirst() }
    }

    /// Nothing of the stream is taken any more.
    func dropStreamed() {
        let waiting = inbox.withLock { inbox in
            defer { inbox.streamed = [] }
            return inbox.streamed
        }
        streamCompletion.take()?(false)
        for streamed in waiting { streamed.completion(false) }
    }
}
