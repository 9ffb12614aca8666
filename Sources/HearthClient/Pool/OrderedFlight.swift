/// The ordered calls that were sent and have not ended, and how many there may be.
///
/// A call names the one before it, and the server refuses it unless that one was applied. So when one is refused, all
/// after it are, and are sent again. To send few of them in vain, one call is then in flight alone; each one that is
/// applied allows one more, so that the number doubles with each round trip.
struct OrderedFlight<Call> {
    /// How a call ended.
    enum End {
        case applied
        /// The server has answered with an error.
        case refused
        /// It was cancelled, or its connection was lost.
        case unknown
    }

    private struct Sent {
        let number: UInt64
        /// Nil when it has ended.
        var call: Call?
    }

    /// By number. Those before `head` have ended; the last one has not.
    private var sent: [Sent] = []
    private var head = 0
    private(set) var count = 0
    private var countMax = Int.max

    var hasRoom: Bool { count < countMax }

    /// The call with the greatest number below this one among those that are meant. O(1) for a number that is greater
    /// than all in flight, if all are meant.
    func predecessor(of number: UInt64, where isMeant: (Call) -> Bool = { _ in true }) -> Call? {
        let end = sent.last.map { $0.number < number } ?? true ? sent.count : position(of: number)
        return sent[head..<max(head, end)].last { $0.call.map(isMeant) ?? false }?.call
    }

    /// A call is sent; no call with its number is in flight.
    mutating func begin(_ call: Call, _ number: UInt64) {
        count += 1
        let isLast = sent.last.map { $0.number < number } ?? true
        let position = isLast ? sent.count : position(of: number)
        if position < sent.count, sent[position].number == number {
            sent[position].call = call
            head = min(head, position)
        } else {
            sent.insert(Sent(number: number, call: call), at: position)
            if position < head { head = position }
        }
    }

    /// A call in flight has ended. Without effect for another number.
    mutating func end(_ number: UInt64, _ end: End) {
        let position = position(of: number)
        guard position < sent.count, sent[position].number == number, sent[position].call != nil else { return }
        sent[position].call = nil
        count -= 1
        while head < sent.count, sent[head].call == nil { head += 1 }
        while let last = sent.last, last.call == nil { sent.removeLast() }
        if head >= sent.count {
            sent.removeAll(keepingCapacity: true)
            head = 0
        } else if head >= 1024 {
            sent.removeFirst(head)
            head = 0
        }
        switch end {
        case .applied: if countMax < .max { countMax += 1 }
        case .refused: countMax = 1
        case .unknown: break
        }
    }

    private func position(of number: UInt64) -> Int { sent.partitioningIndex { $0.number >= number } }
}
