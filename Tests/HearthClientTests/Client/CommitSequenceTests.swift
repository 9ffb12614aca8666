// Request ids of commits.

import Synchronization
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct CommitSequenceTests {
    @Test
    func `Numbers start at 1 and grow; the oldest pending one follows the answers`() {
        var sequence = CommitSequence()
        let tickets = (0..<4).map { _ in sequence.begin() }
        expectEqual(tickets.map(\.sequence), [1, 2, 3, 4])
        expectEqual(Set(tickets.map(\.session)).count, 1)
        sequence.finish(tickets[1])
        expectEqual(sequence.oldestPending(of: tickets[3]), 1, "1 is still pending")
        sequence.finish(tickets[0])
        expectEqual(sequence.oldestPending(of: tickets[3]), 3)
        sequence.finish(tickets[2])
        sequence.finish(tickets[3])
        expectEqual(sequence.oldestPending(of: sequence.begin()), 5)
    }

    @Test
    func `Finishing twice changes nothing`() {
        var sequence = CommitSequence()
        let first = sequence.begin()
        let second = sequence.begin()
        sequence.finish(first)
        sequence.finish(first)
        expectEqual(sequence.oldestPending(of: second), 2)
        expectEqual(sequence.trackedCount, 1)
    }

    @Test
    func `A commit that stays unanswered does not stretch the window: a new session begins`() {
        let names = Mutex<UInt64>(0)
        var sequence = CommitSequence(windowMax: 8) {
            names.withLock { number in
                number += 1
                return .init(high: 0, low: number)
            }
        }
        let stuck = sequence.begin()
        var last = stuck
        for _ in 0..<100 {
            last = sequence.begin()
            sequence.finish(last)
        }
        expect(last.session != stuck.session)
        expectEqual(sequence.oldestPending(of: stuck), 1)
        expectEqual(sequence.sessionCount, 2, "settled sessions are forgotten")
        sequence.finish(stuck)
        expectEqual(sequence.sessionCount, 1)
    }

    @Test(arguments: 0..<10)
    func `The oldest pending number never passes a pending one`(seed: UInt64) {
        var generator = JitterGenerator(seed: seed)
        var sequence = CommitSequence(windowMax: 32)
        var pending: [CommitSequence.Ticket] = []
        for _ in 0..<600 {
            if generator.nextUnit() < 0.5 || pending.isEmpty {
                pending.append(sequence.begin())
            } else {
                sequence.finish(pending.remove(at: Int(generator.nextUnit() * Double(pending.count))))
            }
            for ticket in pending {
                let oldest = sequence.oldestPending(of: ticket)
                let truth = pending.filter { $0.session == ticket.session }.map(\.sequence).min()
                expectEqual(oldest, truth, "seed \(seed)")
            }
        }
        expect(sequence.trackedCount < 32 * (sequence.sessionCount + 1))
    }
}
