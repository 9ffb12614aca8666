// The results of commits by client, so that a commit that is sent again is not applied again.
//
// A client that lost its connection cannot know whether its commit arrived. It sends it again under the same number,
// and here the first result is found. Results are kept until the client says, with a later request, that it has them
// (`oldestPending`), or until its session has been silent for long.
//
// Results outlive a restart. Each takes a slot of its session, a separate key in the storage:
//
//     03 | session, 16 | slot, 4      ->      | sequence, varint | encoded result |
//
// and a slot is written again when its result is no longer wanted. A client that waits for each answer so keeps one or
// two slots busy, however long it lives. The slot's key is written by the same commit as the documents: both or
// neither.
//
// A pure state machine: it says which keys to write and does not write them.

internal import Basics
internal import DocumentModel
internal import StoreFormat

/// The sessions of all writers. Belongs to the commit thread.
struct SessionTable {
    struct SessionName: Hashable {
        var high: UInt64
        var low: UInt64
    }

    /// What is known of a request.
    enum Finding {
        /// Never seen: continue.
        case new
        /// Applied before, with this result.
        case repeated(encodedResult: [UInt8])
        /// Answered so long ago that its result is forgotten, or too far ahead of what is unanswered.
        case refused(RequestError)
    }

    private struct Kept {
        var sequence: UInt64
        var slot: UInt32
        var encodedResult: [UInt8]
    }

    private struct Session {
        /// In no order; few.
        var kept: [Kept] = []
        var freeSlots: [UInt32] = []
        /// Slots 0 ..< slotCount have been written.
        var slotCount: UInt32 = 0
        /// Whether the result kept last has taken a slot that was never written.
        var hasGrown = false
        /// Results below have been forgotten, on the client's word.
        var oldestPending: UInt64 = 0
        var lastUsedMilliseconds: UInt64

        /// - Parameter slot: chosen before, by this table or another; nil chooses one.
        mutating func keep(
            _ identifier: RequestIdentifier, _ encodedResult: [UInt8], slot chosen: UInt32?, nowMilliseconds: UInt64
        ) -> UInt32 {
            lastUsedMilliseconds = nowMilliseconds
            forgetBelow(identifier.oldestPending)
            let slot = chosen ?? freeSlots.last ?? slotCount
            hasGrown = slot >= slotCount
            // What the slot had is not wanted, as the table that chose it knew.
            if chosen != nil { kept.removeAll { $0.slot == slot } }
            restore(Kept(sequence: identifier.sequence, slot: slot, encodedResult: encodedResult))
            return slot
        }

        /// Forgets the result kept last. A slot that was never written does not count as written.
        mutating func undo(_ sequence: UInt64) {
            guard let position = kept.firstIndex(where: { $0.sequence == sequence }) else { return }
            let slot = kept.remove(at: position).slot
            if hasGrown, slot == slotCount - 1 { slotCount -= 1 } else { freeSlots.append(slot) }
        }

        mutating func restore(_ found: Kept) {
            // Slots below that were not met yet count as free until they are.
            while slotCount <= found.slot {
                freeSlots.append(slotCount)
                slotCount += 1
            }
            freeSlots.removeAll { $0 == found.slot }
            kept.append(found)
        }

        /// Frees the slots of results that the client has.
        private mutating func forgetBelow(_ sequence: UInt64) {
            if sequence <= oldestPending { return }
            oldestPending = sequence
            var position = 0
            while position < kept.count {
                if kept[position].sequence < sequence {
                    freeSlots.append(kept[position].slot)
                    kept.swapAt(position, kept.count - 1)
                    kept.removeLast()
                } else {
                    position += 1
                }
            }
        }
    }

    /// A key of the session space that no longer counts.
    struct SlotName: Equatable {
        var session: SessionName
        var slot: UInt32
    }

    private var sessions: [SessionName: Session] = [:]
    let sessionsMax: Int
    let resultsMax: Int
    let idleMilliseconds: UInt64

    init(sessionsMax: Int, resultsMax: Int, idleMilliseconds: UInt64) {
        self.sessionsMax = sessionsMax
        self.resultsMax = resultsMax
        self.idleMilliseconds = idleMilliseconds
    }

    var count: Int { sessions.count }

    /// Looks a request up, before it is applied.
    func find(_ identifier: RequestIdentifier) -> Finding {
        guard identifier.oldestPending <= identifier.sequence else {
            return .refused(.invalidArgument("The oldest pending request cannot be later than the request itself."))
        }
        if identifier.sequence - identifier.oldestPending >= UInt64(resultsMax) {
            return .refused(
                RequestError(
                    .resourceExhausted,
                    "Too many requests of the session are open: at most \(resultsMax) are allowed."))
        }
        guard let session = sessions[SessionName(identifier)] else { return .new }
        if let kept = session.kept.first(where: { $0.sequence == identifier.sequence }) {
            return .repeated(encodedResult: kept.encodedResult)
        }
        if identifier.sequence < session.oldestPending {
            return .refused(
                RequestError(
                    .failedPrecondition, "The request repeats one whose result the client has already acknowledged."))
        }
        return .new
    }

    /// Keeps the result of a request that was applied.
    ///
    /// - Parameter slot: of its record, at recovery and on a follower: which slots are free depends on what a table has
    ///   seen. Nil chooses one.
    /// - Returns: the slot to write it to.
    mutating func keep(
        _ identifier: RequestIdentifier, encodedResult: RawSpan, slot: UInt32? = nil, nowMilliseconds: UInt64
    ) -> UInt32 {
        let result = [UInt8](copying: encodedResult)
        return sessions[SessionName(identifier), default: Session(lastUsedMilliseconds: nowMilliseconds)]
            .keep(identifier, result, slot: slot, nowMilliseconds: nowMilliseconds)
    }

    /// Forgets a result whose commit could not be staged.
    mutating func undo(_ identifier: RequestIdentifier) {
        sessions[SessionName(identifier)]?.undo(identifier.sequence)
    }

    /// Takes in a slot found in the storage at opening.
    mutating func restore(_ name: SlotName, sequence: UInt64, encodedResult: RawSpan, nowMilliseconds: UInt64) {
        sessions[name.session, default: Session(lastUsedMilliseconds: nowMilliseconds)].restore(
            Kept(sequence: sequence, slot: name.slot, encodedResult: [UInt8](copying: encodedResult)))
    }

    /// The sessions to forget: those that are idle, and the longest idle ones when there are too many.
    func idle(nowMilliseconds: UInt64) -> [SessionName] {
        var removed = sessions.filter { nowMilliseconds >= $0.value.lastUsedMilliseconds + idleMilliseconds }.map(\.key)
        if sessions.count - removed.count > sessionsMax {
            // A tenth at once, so that a flood of new sessions does not sort at each request.
            let silent = sessions.sorted { $0.value.lastUsedMilliseconds < $1.value.lastUsedMilliseconds }
            removed = silent.prefix(max(removed.count, sessions.count - sessionsMax + sessionsMax / 10)).map(
                \.key)
        }
        return removed
    }

    /// How many slots of a session may have been written: those below the count.
    func slotCount(of session: SessionName) -> UInt32 { sessions[session]?.slotCount ?? 0 }

    /// Forgets a session, whose slots are deleted.
    mutating func remove(_ session: SessionName) { sessions[session] = nil }

    var hasTooMany: Bool { sessions.count > sessionsMax }
}

extension SessionTable.SessionName {
    init(_ identifier: RequestIdentifier) {
        self.init(high: identifier.sessionHigh, low: identifier.sessionLow)
    }
}

extension SessionTable.SlotName {
    /// Writes the slot's key into an empty writer.
    func writeKey(into writer: inout ByteBuffer) {
        writer.reset()
        writer.append(byte: KeySpace.sessions.rawValue)
        writer.append(bigEndian: session.high)
        writer.append(bigEndian: session.low)
        writer.append(bigEndian: slot)
    }

    /// Reads a slot's key; nil when it is none.
    init?(key: RawSpan) {
        guard key.byteCount == 21, key[byteAt: 0] == KeySpace.sessions.rawValue else { return nil }
        // In bounds by the check above.
        session = SessionTable.SessionName(
            high: UInt64(bigEndian: unsafe key.unsafeLoadUnaligned(fromByteOffset: 1, as: UInt64.self)),
            low: UInt64(bigEndian: unsafe key.unsafeLoadUnaligned(fromByteOffset: 9, as: UInt64.self)))
        slot = UInt32(bigEndian: unsafe key.unsafeLoadUnaligned(fromByteOffset: 17, as: UInt32.self))
    }
}
