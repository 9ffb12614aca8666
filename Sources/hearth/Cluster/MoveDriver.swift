// Drives the moves away from the stores that a server leads.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import PostgreSQLLog
import Replication
import Server

/// Belongs to the thread of ``DatabaseMoves``.
final class MoveDriver {
    /// A move that this server drives.
    private struct Active {
        let name: DatabaseName
        /// The number of the source store.
        let source: Int
        var move: DatabaseMove
        /// What was read and is not sent yet.
        var chunk: [UInt8] = []
        /// Documents that were sent.
        var documents: UInt64 = 0
        /// What the target has left to do for its indexes, by its last answer.
        var indexWork: UInt64 = 0
        /// When the next step is due, in milliseconds.
        var dueAt: UInt64 = 0
        var failures = 0
        /// What holds it up.
        var note = ""
        var report = RepeatedReport()
        /// What the row says.
        var noted: (documents: UInt64, note: String) = (0, "")
        /// When the source was asked to release the database, in milliseconds.
        var releasedAt: UInt64?
    }

    /// A move that has ended here. If the row stays it is driven again, later each time, without a line in the log.
    private struct Ended {
        let generation: UInt64
        var count = 0
        /// In milliseconds.
        var againAt: UInt64 = 0
    }

    private let moves: DatabaseMoves
    private let served: [ServedStore]
    /// With the home database.
    private let session: KeptSession
    private var actives: [DatabaseName: Active] = [:]
    /// Moves that have ended here, and are still in their rows.
    private var ended: [DatabaseName: Ended] = [:]
    /// When the rows are looked at again, in milliseconds.
    private var lookAt: UInt64 = 0

    private static let intervalMilliseconds: UInt64 = 1_000
    /// How long one move continues before the others have their turn.
    private static let shareMilliseconds: UInt64 = 200
    /// How long nothing is read after there was nothing.
    private static let quietMilliseconds: UInt64 = 5
    private static let pauseMillisecondsMin: UInt64 = 20
    private static let pauseMillisecondsMax: UInt64 = 1_000
    /// How long a move that has ended here is not driven again at most.
    private static let endedMillisecondsMax: UInt64 = 60_000

    init(_ moves: DatabaseMoves, _ served: [ServedStore]) {
        self.moves = moves
        self.served = served
        session = KeptSession(address: moves.address)
    }

    func close() { session.close() }

    /// Does what is due.
    /// - Returns: when the next work is due, in milliseconds.
    func turn() -> UInt64 {
        let now = SystemClock.monotonicMilliseconds()
        if now >= lookAt {
            lookAt = now + Self.intervalMilliseconds
            // The thread of the places says why the database cannot be reached.
            try? look()
        }
        for var active in Array(actives.values) where active.dueAt <= now {
            drive(&active)
            actives[active.name] = isOver(active) ? nil : active
        }
        return min(lookAt, actives.values.map(\.dueAt).min() ?? .max)
    }

    // MARK: Rows

    /// Learns which databases move away from the stores that this server leads, and what is left of earlier moves.
    private func look() throws {
        if moves.own.allSatisfy({ !moves.stores[$0].holdsLease }) { return endAll { _ in true } }
        try session.use(look)
    }

    private func look(_ session: PostgreSQLSession) throws {
        for index in moves.own where leads(index) { try sweep(index, session) }
        let rows = StoreTables.moveRows(try session.run(StoreTables.moves))
        var wanted: [DatabaseName: DatabaseMove] = [:]
        for row in rows {
            guard let name = try? DatabaseName(row.name), let move = DatabaseMove(row.row),
                let source = moves.own.first(where: { moves.stores[$0].tables.name == move.source }), leads(source)
            else { continue }
            wanted[name] = move
            if actives[name] == nil, mayDrive(name, move) {
                actives[name] = Active(name: name, source: source, move: move, documents: row.documents)
                if ended[name] != nil { continue }
                moves.log(
                    .info, "database_move_driven",
                    ["database": row.name, "from": move.source, "to": move.target, "note": row.note])
            }
        }
        endAll { wanted[$0.name]?.generation != $0.move.generation }
        ended = ended.filter { wanted[$0.key]?.generation == $0.value.generation }
        for active in Array(actives.values) { actives[active.name] = try note(active, session) }
        for index in moves.own {
            moves.stores[index].moveFigures.change { $0.active = actives.values.count { $0.source == index } }
        }
    }

    /// Whether a move that is in a row is driven now.
    private func mayDrive(_ name: DatabaseName, _ move: DatabaseMove) -> Bool {
        guard let last = ended[name], last.generation == move.generation else {
            ended[name] = nil
            return true
        }
        return SystemClock.monotonicMilliseconds() >= last.againAt
    }

    private func leads(_ index: Int) -> Bool { served[index].isOpen && moves.stores[index].holdsLease }

    /// Forgets moves. The servers that lead continue them, or they are over.
    private func endAll(where isOver: (Active) -> Bool) {
        for active in actives.values where isOver(active) {
            served[active.source].store.endMoveSource(of: active.name)
            actives[active.name] = nil
        }
    }

    /// Enters how far a move is.
    private func note(_ active: Active, _ session: PostgreSQLSession) throws -> Active {
        guard active.noted != (active.documents, active.note) else { return active }
        var active = active
        active.noted = (active.documents, active.note)
        try session.run(
            StoreTables.noting(
                "\(active.name)", generation: active.move.generation, documents: active.documents, note: active.note))
        return active
    }

    // MARK: What is left of moves

    private func sweep(_ index: Int, _ session: PostgreSQLSession) throws {
        let (store, name) = (served[index].store, moves.stores[index].tables.name)
        // Before the rows: the row of a move is older than what was received for it.
        for (database, tenure) in store.tenures {
            guard MoveRemains.mayBe(tenure) else { continue }
            guard let row = StoreTables.moveRows(try session.run(StoreTables.row(of: "\(database)"))).first?.row else {
                continue
            }
            switch MoveRemains(tenure, in: name, row, nowMicroseconds: SystemClock.microseconds()) {
            case nil: break
            case .received:
                store.discardReceived(database, generation: tenure.generation) { _ in }
                moves.log(.info, "database_copy_discarded", ["database": "\(database)", "store": name])
            case .copy:
                store.deleteReleased(database, generation: tenure.generation) { _ in }
                moves.log(.info, "database_copy_deleted", ["database": "\(database)", "store": name])
            }
        }
    }

    // MARK: One move

    /// Does steps of a move until it has to wait, or has had its share of time. From the release on nothing else comes
    /// between.
    private func drive(_ active: inout Active) {
        let end = SystemClock.monotonicMilliseconds() + Self.shareMilliseconds
        repeat {
            do {
                let step = active.move.step
                let reply = try answer(&active)
                try giveUpIfRefused(active, reply)
                active.move.receive(reply)
                if reply.isProgress(in: step) { (active.failures, active.note) = (0, "") }
            } catch {
                fail(&active, error)
            }
            if case .ended = active.move.step { return }
            let now = SystemClock.monotonicMilliseconds()
            if active.dueAt > now || moves.isStopping { return }
            if now >= end, !active.move.isReleased { return }
        } while true
    }

    private func fail(_ active: inout Active, _ error: any Error) {
        active.move.fail()
        let text = ErrorText.describe(error)
        if active.report.isDue(text, at: SystemClock.monotonicMilliseconds()) {
            moves.log(.warning, "database_move_waits", ["database": "\(active.name)", "message": text])
        }
        active.note = text
        let pause = min(Self.pauseMillisecondsMin << UInt64(min(active.failures, 6)), Self.pauseMillisecondsMax)
        active.failures += 1
        active.dueAt = SystemClock.monotonicMilliseconds() + pause
    }

    /// Does what a move is to do next.
    private func answer(_ active: inout Active) throws -> DatabaseMove.Reply {
        let (name, generation) = ("\(active.name)", active.move.generation)
        switch active.move.step {
        case .ended: return .sourceRefuses
        case .receiving: return try ask(&active, chunk: [])
        case .reading(let progress): return try read(&active, after: progress)
        case .sending:
            let chunk = active.chunk
            active.chunk = []
            return try ask(&active, chunk: chunk)
        case .announcing:
            // Nobody has the database between the release and the last chunk.
            _ = try leader(of: target(active.move))
            let rows = try session.run(StoreTables.announcingRelease(name, generation: generation))
            return .row(isDone: !rows.isEmpty)
        case .releasing: return try release(&active)
        case .recording:
            let rows = try session.run(StoreTables.recordingMove(name, generation: generation))
            moves.places.look()
            return .row(isDone: !rows.isEmpty)
        }
    }

    private func read(_ active: inout Active, after progress: MoveProgress) throws -> DatabaseMove.Reply {
        guard leads(active.source) else { throw MoveFailure.leadsNoLonger }
        let store = served[active.source].store
        let tenure = store.tenure(of: active.name)
        switch tenure.state {
        case .owned: break
        case .released where tenure.generation == active.move.generation && tenure.target == active.move.target: break
        case .released:
            // The table was restored to before that move. What is left here is older than what the other store has.
            try giveUp(
                active, "the store \(tenure.target) has got the database by an earlier move: move it there first")
            return .sourceRefuses
        case .absent:
            try giveUp(active, "nothing was ever written to the database")
            return .sourceRefuses
        case .receiving, .discarded:
            // The table was restored to before it left this store.
            try giveUp(active, "the store \(active.move.source) does not have the database")
            return .sourceRefuses
        }
        let chunk: MoveChunk
        do throws(RequestError) {
            chunk = try store.moveChunk(
                of: active.name, generation: active.move.generation, after: progress.bytes)
        } catch {
            guard error.code == .notFound || error.code == .failedPrecondition else { throw error }
            try giveUp(active, error.message)
            return .sourceRefuses
        }
        active.chunk = chunk.bytes
        active.documents += UInt64(chunk.documents)
        moves.stores[active.source].moveFigures.change { $0.documents += UInt64(chunk.documents) }
        let isReleased = tenure.state == .released
        // Queries would fail at the target until it has built its indexes.
        let waitsForIndexes = active.indexWork > 0 && !isReleased
        if chunk.bytes.isEmpty, waitsForIndexes { throw MoveFailure.indexesAreBuilt }
        // Nothing has come since; what comes is looked for after a moment.
        if chunk.bytes.isEmpty, !chunk.isCaughtUp || isReleased {
            active.dueAt = SystemClock.monotonicMilliseconds() + Self.quietMilliseconds
        }
        return .chunk(
            DatabaseMove.Chunk(
                isEmpty: chunk.bytes.isEmpty, isShort: chunk.isCaughtUp && !waitsForIndexes, isReleased: isReleased))
    }

    /// Gives a move up that the target will never take: the table was restored to before a later move, or to before the
    /// target got the database.
    private func giveUpIfRefused(_ active: Active, _ reply: DatabaseMove.Reply) throws {
        let (name, target) = ("\(active.name)", active.move.target)
        switch reply {
        case .targetRefuses:
            try giveUp(active, "the store \(target) knows of a later move of the database: move it again")
        case .owned(let generation) where generation != active.move.generation:
            let message = "the store \(target) has the database by another way"
            guard try giveUp(active, message) else { break }
            moves.log(.error, "database_twice", ["database": name, "message": message])
        default: break
        }
    }

    /// Gives a move up that cannot reach its end: nothing is in the database, it is being deleted, or a store is not as
    /// the row has it.
    ///
    /// - Returns: false if the row is that of another move by now.
    /// - Throws: also if the row says that the source releases the database.
    @discardableResult private func giveUp(_ active: Active, _ note: String) throws -> Bool {
        let (name, generation) = ("\(active.name)", active.move.generation)
        if try session.run(StoreTables.givingUp(name, generation: generation, note: note)).isEmpty {
            let row = StoreTables.moveRows(try session.run(StoreTables.row(of: name))).first?.row
            guard let row, row.movingTo != nil, row.generation == generation else { return false }
            throw MoveFailure.isAnnounced(note)
        }
        moves.places.look()
        moves.log(.warning, "database_move_given_up", ["database": name, "message": note])
        return true
    }

    private func release(_ active: inout Active) throws -> DatabaseMove.Reply {
        guard leads(active.source) else { throw MoveFailure.leadsNoLonger }
        _ = try leader(of: target(active.move))
        active.releasedAt = SystemClock.monotonicMilliseconds()
        let outcome = Monitor<Result<DatabaseTenure, RequestError>?>(nil)
        served[active.source].store.release(
            active.name, generation: active.move.generation, to: active.move.target
        ) { result in outcome.update { $0 = result } }
        _ = try outcome.wait { $0 }.get()
        return .released
    }

    /// Asks the leader of the target.
    private func ask(_ active: inout Active, chunk: [UInt8]) throws -> DatabaseMove.Reply {
        let (generation, target) = (active.move.generation, try target(active.move))
        let received = try moves.ask(
            ReceiveDatabaseRequest(
                store: target.tables.name, target.identity.map { CalledStore(high: $0.high, low: $0.low) } ?? .init(),
                database: "\(active.name)", generation: generation, chunk: chunk),
            at: try leader(of: target))
        active.indexWork = received.indexWork
        switch received.state {
        case .owned:
            // The table was restored to before the move by which the target has it.
            let left = served[active.source].store.tenure(of: active.name)
            let isByEarlier = left.state == .released && received.generation >= left.generation
            return .owned(generation: isByEarlier ? generation : received.generation)
        case .receiving where received.generation == generation: return .receiving(MoveProgress(received.progress))
        case .receiving, .none:
            if received.generation >= generation { return .targetRefuses }
            throw MoveFailure.notReceived
        }
    }

    /// The store to which a database moves. A database that is away is not waited for.
    private func target(_ move: DatabaseMove) throws -> Cluster {
        guard let target = moves.stores.first(where: { $0.tables.name == move.target }), target.isReached else {
            throw MoveFailure.isAway(move.target)
        }
        return target
    }

    /// The address of the server that leads a store.
    private func leader(of store: Cluster) throws -> String {
        guard let address = store.leader else { throw MoveFailure.noLeader(store.tables.name) }
        return address
    }

    /// A move that is in its row all the same, for example since the table was restored, is not driven for some time.
    private func noteEnd(of active: Active) {
        var last = ended[active.name] ?? Ended(generation: active.move.generation)
        let pause = min(Self.intervalMilliseconds << UInt64(min(last.count, 6)), Self.endedMillisecondsMax)
        last.count += 1
        last.againAt = SystemClock.monotonicMilliseconds() + pause
        ended[active.name] = last
    }

    /// Whether a move has ended for this server; writes that to the log.
    private func isOver(_ active: Active) -> Bool {
        guard case .ended(let end) = active.move.step else { return false }
        served[active.source].store.endMoveSource(of: active.name)
        let (name, source, target) = ("\(active.name)", active.move.source, active.move.target)
        switch end {
        case .moved:
            let pause = active.releasedAt.map { SystemClock.monotonicMilliseconds() - $0 }
            moves.stores[active.source].moveFigures.change { figures in
                figures.completed += 1
                if let pause { figures.lastPauseMilliseconds = pause }
            }
            moves.log(
                .info, "database_moved",
                [
                    "database": name, "from": source, "to": target, "documents": String(active.documents),
                    "pause_ms": pause.map(String.init) ?? "",
                ])
        case .superseded where ended[active.name] == nil:
            moves.log(.info, "database_move_superseded", ["database": name, "from": source, "to": target])
        case .superseded, .conflict: break
        }
        noteEnd(of: active)
        return true
    }
}

extension DatabaseMove.Reply {
    /// Whether a move is further after a reply. One that is held up asks again and again how far the target is, and
    /// finds nothing to send.
    func isProgress(in step: DatabaseMove.Step) -> Bool {
        switch self {
        case .receiving: step != .receiving
        case .chunk(let chunk): !chunk.isEmpty
        default: true
        }
    }
}

/// Why a move does not continue now.
private enum MoveFailure: Error, CustomStringConvertible {
    case leadsNoLonger
    case isAway(String)
    case noLeader(String)
    case notReceived
    case indexesAreBuilt
    case isAnnounced(String)

    var description: String {
        switch self {
        case .leadsNoLonger: "another server leads the store that has the database"
        case .isAway(let store): "the database of the store \(store) cannot be reached"
        case .noLeader(let store): "the store \(store) has no leader"
        case .isAnnounced(let reason): reason
        case .indexesAreBuilt: "the store to which the database moves builds its indexes"
        case .notReceived: "the store to which the database moves has lost what it received; it begins again"
        }
    }
}
