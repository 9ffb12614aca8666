// One thread drives the members of all stores whose logs lie in one PostgreSQL database.
//
//     other threads ── join, wake, leave ──► inbox ──┐
//     descriptors of all connections ────────────────┼──► thread "cluster" ──► a turn of each member that has something
//     times of all members ──────────────────────────┘                        to do, in no more than one pass
//
// A member that leads has two separate connections. Those that only follow share theirs (FollowerChannels).
//
// Nothing in a turn waits: statements are sent and their replies taken without waiting, connections are opened by
// another thread (ConnectionOpener), and a host queues what it gets.

internal import Basics
internal import Glibc

/// Drives members. Thread-safe. The thread exists while there are members.
package final class MemberLoop: @unchecked Sendable {
    // Sendable: `inbox` and `opener` are; everything else is used by the thread alone.

    private struct Inbox {
        var joining: [MemberDriver] = []
        var leaving: [MemberDriver] = []
        var woken: [MemberDriver] = []
    }

    let database: String
    let opener = ConnectionOpener()
    /// For the thread alone.
    let followers: FollowerChannels
    private let inbox = WorkThread(name: "cluster", Inbox())
    private let wakeDescriptor = WakeDescriptor()

    private var members: [MemberDriver] = []
    /// For poll(2), and whose they are; the first is the one that wakes.
    private var waiting: [pollfd] = []
    private var polled: [(member: MemberDriver?, channel: MemberChannel)] = []

    /// - Parameter database: its address.
    package init(database: String) {
        self.database = database
        followers = FollowerChannels(database, opener: opener) { [wakeDescriptor] in wakeDescriptor.signal() }
    }

    /// How long a member that follows waits after it has found nothing new in its log, in milliseconds: longer with
    /// many members, which wait for each other.
    var lookMilliseconds: UInt64 { min(UInt64(members.count) * 2, 500) }

    /// Begins to drive a member.
    func join(_ member: MemberDriver) throws(SystemThread.StartFailure) {
        member.isWoken.store(false, ordering: .sequentiallyConsistent)
        try inbox.add(run: { [self] in run() }) { $0.joining.append(member) }
        wakeDescriptor.signal()
    }

    /// Ends a member that has joined. Waits until its last turn is over.
    func leave(_ member: MemberDriver) {
        inbox.update { $0.leaving.append(member) }
        wakeDescriptor.signal()
        member.waitForEnd()
    }

    /// Has a member take a turn. Any thread.
    func wake(_ member: MemberDriver) {
        if member.isWoken.exchange(true, ordering: .acquiringAndReleasing) { return }
        let isDriven = inbox.updateIfRunning { $0.woken.append(member) }
        isDriven ? wakeDescriptor.signal() : member.isWoken.store(false, ordering: .sequentiallyConsistent)
    }

    // MARK: The thread

    private func run() {
        while takeInbox() {
            let now = BootClock.milliseconds()
            for member in members where member.dueAt <= now { member.turn(now) }
            followers.turn(now, members)
            wait()
        }
    }

    /// Takes in what other threads want.
    /// - Returns: false if there are no members any more, and the thread ends.
    private func takeInbox() -> Bool {
        let taken = inbox.update { inbox in
            defer { inbox = Inbox() }
            return inbox
        }
        members += taken.joining
        for member in taken.woken {
            member.isWoken.store(false, ordering: .sequentiallyConsistent)
            member.dueAt = 0
        }
        for member in taken.leaving {
            members.removeAll { $0 === member }
            followers.forget(member)
            member.end()
        }
        if !members.isEmpty { return true }
        for channel in followers.all { channel.close() }
        let work: Void? = inbox.take { inbox in
            if !inbox.joining.isEmpty || !inbox.leaving.isEmpty { return () }
            // Members that have gone must not be kept.
            inbox.woken = []
            return nil
        }
        return work != nil
    }

    /// Waits for a connection, for another thread, or for what is due next.
    private func wait() {
        waiting.removeAll(keepingCapacity: true)
        polled.removeAll(keepingCapacity: true)
        waiting.append(wakeDescriptor.interest)
        var due = UInt64.max
        for member in members {
            due = min(due, member.dueAt)
            add(member.lease, of: member)
            add(member.log, of: member)
        }
        for channel in followers.all { add(channel, of: nil) }
        due = min(due, followers.dueAt)
        let now = BootClock.milliseconds()
        let milliseconds = due > now ? min(due - now, 60_000) : 0
        _ = unsafe poll(&waiting, nfds_t(waiting.count), Int32(milliseconds))
        if waiting[0].revents != 0 { wakeDescriptor.clear() }
        for (index, (member, channel)) in polled.enumerated() where waiting[index + 1].revents != 0 {
            guard let event = channel.connection?.advance() else { continue }
            guard let member else {
                followers.handle(event, of: channel, members)
                continue
            }
            member.handle(event, of: channel)
            member.dueAt = 0
        }
    }

    private func add(_ channel: MemberChannel, of member: MemberDriver?) {
        guard let interest = channel.connection?.interest else { return }
        waiting.append(pollfd(fd: interest.descriptor, events: interest.events, revents: 0))
        polled.append((member, channel))
    }
}
