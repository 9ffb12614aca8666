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
        /// The number of the database that the request wrote to; 0 if it is not known any more.
        var database: UInt32 = 0

        /// Bytes of memory beside those of its slot, about.
        var byteCount: Int { Self.fixedBytes + encodedResult.count }

        private static let fixedBytes = 64
    }

    private struct Session {
        /// In no order; few.
        private(set) var kept: [Kept] = []
        /// Bytes of memory of `kept`, about.
        private var keptBytes = 0
        var freeSlots: [UInt32] = []
        /// Slots 0 ..< slotCount have been written.
        var slotCount: UInt32 = 0
        /// Whether the result kept last has taken a slot that was never written.
        var hasGrown = false
        /// Results below have been forgotten, on the client's word.
        var oldestPending: UInt64 = 0
        var lastUsedMilliseconds: UInt64
        /// What the table counts for this session.
        var countedBytes = 0

        init(lastUsedMilliseconds: UInt64) {
            self.lastUsedMilliseconds = lastUsedMilliseconds
        }

        /// Bytes of memory, about. The arrays of slots keep their largest size.
        var byteCount: Int { Self.fixedBytes + Self.slotBytes * Int(slotCount) + keptBytes }

        private static let fixedBytes = 256
        private static let slotBytes = 32

        /// - Parameter slot: chosen before, by this table or another; nil chooses one.
        mutating func keep(
            _ identifier: RequestIdentifier, _ encodedResult: [UInt8], slot chosen: UInt32?, database: UInt32,
            nowMilliseconds: UInt64
        ) -> UInt32 {
            lastUsedMilliseconds = nowMilliseconds
            forgetBelow(identifier.oldestPending)
            let slot = chosen ?? freeSlots.last ?? slotCount
            hasGrown = slot >= slotCount
            // What the slot had is not wanted, as the table that chose it knew.
            if chosen != nil, let position = kept.firstIndex(where: { $0.slot == slot }) { _ = drop(at: position) }
            restore(
                Kept(sequence: identifier.sequence, slot: slot, encodedResult: encodedResult, database: database))
            return slot
        }

        /// Forgets the result kept last. A slot that was never written does not count as written.
        mutating func undo(_ sequence: UInt64) {
            guard let position = kept.firstIndex(where: { $0.sequence == sequence }) else { return }
            let slot = drop(at: position)
            if hasGrown, slot == slotCount - 1 { slotCount -= 1 } else { freeSlots.append(slot) }
            hasGrown = false
        }

        mutating func restore(_ found: Kept) {
            // Slots below that were not met yet count as free until they are.
            while slotCount <= found.slot {
                freeSlots.append(slotCount)
                slotCount += 1
            }
            freeSlots.removeAll { $0 == found.slot }
            kept.append(found)
            keptBytes += found.byteCount
        }

        /// Frees the slots of results that the client has.
        private mutating func forgetBelow(_ sequence: UInt64) {
            if sequence <= oldestPending { return }
            oldestPending = sequence
            var position = 0
            while position < kept.count {
                if kept[position].sequence < sequence {
                    freeSlots.append(drop(at: position))
                } else {
                    position += 1
                }
            }
        }

        /// Removes a result; the last one takes its place.
        /// - Returns: its slot.
        private mutating func drop(at position: Int) -> UInt32 {
            kept.swapAt(position, kept.count - 1)
            let dropped = kept.removeLast()
            keptBytes -= dropped.byteCount
            return dropped.slot
        }

        /// Bytes of the results that the client still waits for.
        func byteCount(from oldestPending: UInt64) -> Int {
            kept.reduce(0) { $1.sequence < oldestPending ? $0 : $0 + $1.byteCount }
        }
    }

    /// A key of the session space that no longer counts.
    struct SlotName: Equatable {
        var session: SessionName
        var slot: UInt32
    }

    private var sessions: [SessionName: Session] = [:]
    /// Bytes of memory of all sessions, about.
    private(set) var byteCount = 0
    let sessionsMax: Int
    let bytesMax: Int
    let resultsMax: Int
    let idleMilliseconds: UInt64

    /// - Parameters:
    ///   - bytesMax: of all sessions. The results that one client has not acknowledged may take a sixteenth of it.
    ///   - resultsMax: of one session.
    init(sessionsMax: Int, bytesMax: Int, resultsMax: Int, idleMilliseconds: UInt64) {
        self.sessionsMax = sessionsMax
        self.bytesMax = bytesMax
        self.resultsMax = resultsMax
        self.idleMilliseconds = idleMilliseconds
    }

    var count: Int { sessions.count }

    /// Changes a session, which begins if there is none.
    private mutating func change<Result>(
        _ name: SessionName, nowMilliseconds: UInt64, _ body: (inout Session) -> Result
    ) -> Result {
        func counting(_ session: inout Session) -> (result: Result, grown: Int) {
            let result = body(&session)
            let grown = session.byteCount - session.countedBytes
            session.countedBytes += grown
            return (result, grown)
        }
        let new = Session(lastUsedMilliseconds: nowMilliseconds)
        let (result, grown) = counting(&sessions[name, default: new])
        byteCount += grown
        return result
    }

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
        // Most sessions are small, whatever they have acknowledged since.
        let sessionBytesMax = bytesMax / 16
        if session.byteCount > sessionBytesMax, session.byteCount(from: identifier.oldestPending) > sessionBytesMax {
            return .refused(
                RequestError(
                    .resourceExhausted,
                    "The results that the session has not acknowledged take more than \(sessionBytesMax) bytes."))
        }
        return .new
    }

    /// Whether a request was applied, or its client has its answer.
    func isSettled(_ identifier: RequestIdentifier) -> Bool {
        guard let session = sessions[SessionName(identifier)] else { return false }
        // Most often it is the one that was applied last.
        return identifier.sequence < session.oldestPending
            || session.kept.lastIndex { $0.sequence == identifier.sequence } != nil
    }

    /// Keeps the result of a request that was applied.
    ///
    /// - Parameters:
    ///   - slot: of its record, at recovery and on a follower: which slots are free depends on what a table has seen.
    ///     Nil chooses one.
    ///   - database: the number of the one that the request wrote to; 0 if it is not known.
    /// - Returns: the slot to write it to.
    mutating func keep(
        _ identifier: RequestIdentifier, encodedResult: RawSpan, slot: UInt32? = nil, database: UInt32 = 0,
        nowMilliseconds: UInt64
    ) -> UInt32 {
        let result = [UInt8](copying: encodedResult)
        return change(SessionName(identifier), nowMilliseconds: nowMilliseconds) {
            $0.keep(identifier, result, slot: slot, database: database, nowMilliseconds: nowMilliseconds)
        }
    }

    /// Forgets a result whose commit could not be staged.
    mutating func undo(_ identifier: RequestIdentifier) {
        let name = SessionName(identifier)
        guard let session = sessions[name] else { return }
        change(name, nowMilliseconds: session.lastUsedMilliseconds) { $0.undo(identifier.sequence) }
    }

    /// Takes in a slot found in the storage at opening.
    mutating func restore(_ name: SlotName, sequence: UInt64, encodedResult: RawSpan, nowMilliseconds: UInt64) {
        let found = Kept(sequence: sequence, slot: name.slot, encodedResult: [UInt8](copying: encodedResult))
        change(name.session, nowMilliseconds: nowMilliseconds) { $0.restore(found) }
    }

    /// The sessions to forget: those that are idle, and the longest idle ones if there are too many or they are too
    /// large. The one that was used last stays.
    func idle(nowMilliseconds: UInt64) -> [SessionName] {
        func isIdle(_ session: Session) -> Bool { nowMilliseconds >= session.lastUsedMilliseconds + idleMilliseconds }
        if !hasTooMany { return sessions.filter { isIdle($0.value) }.map(\.key) }
        // A tenth at once, so that a flood of new sessions does not sort at each request.
        let countGoal = count > sessionsMax ? sessionsMax - sessionsMax / 10 : count
        let bytesGoal = byteCount > bytesMax ? bytesMax - bytesMax / 10 : byteCount
        var (count, bytes) = (count, byteCount)
        let silent = sessions.sorted { $0.value.lastUsedMilliseconds < $1.value.lastUsedMilliseconds }.dropLast()
        return silent.prefix { _, session in
            if !isIdle(session), count <= countGoal, bytes <= bytesGoal { return false }
            count -= 1
            bytes -= session.countedBytes
            return true
        }.map(\.key)
    }

    /// The results of a database that clients may still ask for, by session and number; those of which the database is
    /// not known are among them.
    func results(of database: UInt32) -> [RememberedResult] {
        let all = sessions.flatMap { name, session in
            session.kept.filter { $0.database == database || $0.database == 0 }.map { kept in
                RememberedResult(
                    identifier: RequestIdentifier(
                        sessionHigh: name.high, sessionLow: name.low, sequence: kept.sequence,
                        oldestPending: min(session.oldestPending, kept.sequence)),
                    encodedResult: kept.encodedResult)
            }
        }
        return all.sorted { $0.order < $1.order }
    }

    /// How many slots of a session may have been written: those below the count.
    func slotCount(of session: SessionName) -> UInt32 { sessions[session]?.slotCount ?? 0 }

    /// Forgets a session, whose slots are deleted.
    mutating func remove(_ session: SessionName) {
        byteCount -= sessions.removeValue(forKey: session)?.countedBytes ?? 0
    }

    /// Whether there are more sessions than wanted, or they are larger, and some can be forgotten.
    var hasTooMany: Bool { count > sessionsMax || byteCount > bytesMax && count > 1 }
}

/// The result of a request, for another store.
struct RememberedResult: Sendable {
    let identifier: RequestIdentifier
    let encodedResult: [UInt8]

    /// By session, then by number.
    fileprivate var order: (UInt64, UInt64, UInt64) {
        (identifier.sessionHigh, identifier.sessionLow, identifier.sequence)
    }
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
