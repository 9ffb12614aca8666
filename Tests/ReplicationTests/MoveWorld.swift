// A database that moves between two stores: what two servers, the row and clients may do, and what must hold.

@testable import Replication

/// What an exploration of moves may do, and which faults are planted.
struct MoveBounds: Hashable {
    var writes = 2
    var failures = 1
    var moves = 1
    /// How often a move may be given up.
    var aborts = 0
    /// How often the leader of a store may change.
    var leaderChanges = 1
    /// The second store lies in another database: its level, and the note of it beside the row of the database that
    /// moves, do not change in one transaction.
    var isElsewhere = false
    var kinds = MoveEvent.Failure.allCases
    var broken: Broken = []

    /// Rules that a planted fault breaks.
    struct Broken: OptionSet, Hashable {
        let rawValue: Int
        /// The target applies whatever comes.
        static let chunksContinueNothing = Broken(rawValue: 1)
        /// A release counts before it is durable: that of a leader that was replaced never is.
        static let releaseIsStaged = Broken(rawValue: 2)
        /// A move is given up although the row says that the source releases the database.
        static let abortIgnoresRelease = Broken(rawValue: 4)
        /// The row is changed for any move.
        static let rowIgnoresGeneration = Broken(rawValue: 8)
        /// The target receives for a move that is over.
        static let targetForgetsGeneration = Broken(rawValue: 16)
        /// The versions of the target are not above those of the source.
        static let clockStays = Broken(rawValue: 32)
        /// The last chunk is any chunk of a round.
        static let lastBeforeRelease = Broken(rawValue: 64)
        /// A target that gives up what it received forgets that it once had the database.
        static let discardLeavesNothing = Broken(rawValue: 128)
        /// What has changed since the copy began is not copied.
        static let roundsAreSkipped = Broken(rawValue: 256)
        /// A source copies from a state that is older than that of an earlier chunk.
        static let oldStatesAreRead = Broken(rawValue: 512)
        /// A move begins whatever the levels of the stores are.
        static let levelsAreIgnored = Broken(rawValue: 1024)
        /// It is noted that a store was raised before the outcome is known.
        static let notedBeforeRaised = Broken(rawValue: 2048)
    }
}

/// How far a copy is: all documents up to a position as of a version or later, and what changed up to that version.
struct ModelProgress: Hashable {
    var through: Int?
    var position = 0

    var coded: MoveProgress { MoveProgress([through.map { UInt8($0 + 1) } ?? 0, UInt8(position)]) }

    init() {}

    init(_ coded: MoveProgress) {
        through = coded.bytes[0] == 0 ? nil : Int(coded.bytes[0]) - 1
        position = Int(coded.bytes[1])
    }
}

/// What a source has read for the target.
struct ModelChunk: Hashable {
    var from: ModelProgress
    var to: ModelProgress
    var documents: [Int: ModelDocument] = [:]
    /// The clock of the source when it released the database; nil before the last chunk.
    var last: Int?
}

/// A document: how often it was written, and the version of the last write.
struct ModelDocument: Hashable {
    var count = 0
    var version = 0
}

/// What a store has of the database, by its log.
struct ModelStore: Hashable {
    enum Tenure: Hashable {
        /// It has never heard of it.
        case absent
        case owned(generation: UInt64)
        case receiving(generation: UInt64, ModelProgress)
        /// It had it, or a copy, and does not own it.
        case away(generation: UInt64)
    }

    static let documentCount = 2

    var tenure = Tenure.absent
    var documents = [ModelDocument](repeating: ModelDocument(), count: documentCount)
    var clock: Int
    /// The server that leads.
    var leader = 0
    /// Its own row says that its log may have records of moves.
    var isRaised = true

    var isOwner: Bool { if case .owned = tenure { true } else { false } }

    /// Whether the log has a record of a move.
    var hasMoved: Bool {
        switch tenure {
        case .absent, .owned(generation: 0): false
        case .owned, .receiving, .away: true
        }
    }
}

/// A server: what it drives, and what it knows of the stores that it led.
struct ModelServer: Hashable {
    var move: DatabaseMove?
    var chunk: ModelChunk?
    /// By store: what it knew when another one took over; nil if it leads, or knows that it does not.
    var views: [ModelStore?] = [nil, nil]
    /// It knows that the second store was raised.
    var knowsRaised = false
}

/// What a driver asks of others.
enum ModelRequest: Hashable {
    case receive(store: Int, generation: UInt64)
    case apply(store: Int, generation: UInt64, ModelChunk)
    case announce(generation: UInt64, target: Int)
    case release(store: Int, generation: UInt64, server: Int)
    case record(generation: UInt64, target: Int)
    case raise(server: Int)
}

/// What may happen.
enum MoveEvent: Hashable {
    case begin
    case abort
    /// A client writes to a store.
    case write(Int)
    /// A server reads the row, and continues the move if it believes to lead the source.
    case look(Int)
    /// The driver of a server does the next step.
    case step(Int, Failure?)
    /// A request whose connection has ended is executed.
    case execute(Int)
    /// Another server leads a store.
    case depose(Int)
    /// A server ends, or learns that it leads no longer.
    case forget(Int)
    /// The leader of a store gives up what it received for a move that is over.
    case sweep(Int)
    /// The leader of the second store raises it, in its database.
    case raise(Int, Failure?)
    /// A server notes in the home database that the second store was raised.
    case note(Int)

    enum Failure: CaseIterable { case lost, replyLost, late, doubled }
}

struct MoveWorld: Hashable {
    var row = DatabaseRow(store: "0")
    var stores = [ModelStore(clock: 5), ModelStore(clock: 0)]
    var servers = [ModelServer(), ModelServer()]
    var late: [ModelRequest] = []
    /// What was acknowledged.
    var written = [Int](repeating: 0, count: ModelStore.documentCount)
    /// The highest version given out.
    var lastVersion = 5
    var moves = 0
    var aborts = 0
    var failures = 0
    var leaderChanges = 0
    /// Whether the row ever named a store.
    var wasNamed = [true, false]
    /// The home database has the note that the second store was raised.
    var isNoted = true
    var violation: String?

    init(_ bounds: MoveBounds) {
        stores[0].tenure = .owned(generation: 0)
        stores[1].isRaised = !bounds.isElsewhere
        isNoted = !bounds.isElsewhere
    }

    /// The store with a name.
    static func index(_ name: String) -> Int { name == "0" ? 0 : 1 }

    var writeCount: Int { written.reduce(0, +) }
}

// MARK: - What may happen

extension MoveWorld {
    func forEachEvent(_ bounds: MoveBounds, _ body: (MoveEvent) -> Void) {
        let mayBegin = isNoted || bounds.broken.contains(.levelsAreIgnored)
        if row.movingTo == nil, moves < bounds.moves, mayBegin { body(.begin) }
        if !isNoted { forEachRaise(bounds, body) }
        if row.movingTo != nil, aborts < bounds.aborts,
            !row.isReleasing || bounds.broken.contains(.abortIgnoresRelease)
        {
            body(.abort)
        }
        for index in late.indices { body(.execute(index)) }
        for store in stores.indices {
            if writeCount < bounds.writes, stores[store].isOwner { body(.write(store)) }
            if leaderChanges < bounds.leaderChanges { body(.depose(store)) }
            if isLeftOver(store) { body(.sweep(store)) }
        }
        for server in servers.indices {
            guard let move = servers[server].move else {
                if view(of: Self.index(row.store), at: server) != nil { body(.look(server)) }
                continue
            }
            body(.step(server, nil))
            if failures < bounds.failures { body(.forget(server)) }
            if case .reading = move.step { continue }
            if failures < bounds.failures { for kind in bounds.kinds { body(.step(server, kind)) } }
        }
    }

    private func forEachRaise(_ bounds: MoveBounds, _ body: (MoveEvent) -> Void) {
        for server in servers.indices {
            if servers[server].knowsRaised { body(.note(server)) }
            guard !servers[server].knowsRaised, view(of: 1, at: server) != nil else { continue }
            body(.raise(server, nil))
            if failures < bounds.failures { for kind in bounds.kinds { body(.raise(server, kind)) } }
        }
    }

    /// What a server knows of a store that it leads, or believes to lead.
    func view(of store: Int, at server: Int) -> ModelStore? {
        stores[store].leader == server ? stores[store] : servers[server].views[store]
    }

    /// Whether a store has received something for a move that is over.
    private func isLeftOver(_ store: Int) -> Bool {
        guard case .receiving(let generation, _) = stores[store].tenure else { return false }
        return row.generation != generation || row.movingTo != "\(store)"
    }

    mutating func perform(_ event: MoveEvent, _ bounds: MoveBounds) {
        switch event {
        case .begin:
            moves += 1
            row.movingTo = row.store == "0" ? "1" : "0"
            row.generation += 1
        case .abort:
            aborts += 1
            row = DatabaseRow(store: row.store, generation: row.generation + 1)
        case .write(let store): write(store)
        case .look(let server): servers[server].move = DatabaseMove(row)
        case .step(let server, let failure): step(server, failure, bounds)
        case .execute(let index): _ = execute(late.remove(at: index), bounds)
        case .depose(let store):
            leaderChanges += 1
            let old = stores[store].leader
            servers[old].views[store] = stores[store]
            stores[store].leader = 1 - old
            servers[1 - old].views[store] = nil
        case .forget(let server):
            failures += 1
            servers[server] = ModelServer()
        case .sweep(let store): sweep(store, bounds)
        case .raise(let server, let failure): raise(server, failure, bounds)
        case .note(let server):
            isNoted = true
            servers[server].knowsRaised = false
        }
        check()
    }

    private mutating func raise(_ server: Int, _ failure: MoveEvent.Failure?, _ bounds: MoveBounds) {
        if failure != nil { failures += 1 }
        let request = ModelRequest.raise(server: server)
        let isLost = failure == .lost || failure == .late
        if failure == .late || failure == .doubled { late.append(request) }
        let isDone = !isLost && raise(by: server)
        let isAnswered = failure == nil || failure == .doubled
        servers[server].knowsRaised = isDone && isAnswered || bounds.broken.contains(.notedBeforeRaised)
    }

    /// - Returns: whether the store is raised.
    private mutating func raise(by server: Int) -> Bool {
        if stores[1].leader == server { stores[1].isRaised = true }
        return stores[1].isRaised
    }

    private mutating func write(_ store: Int) {
        let document = writeCount % ModelStore.documentCount
        stores[store].clock += 1
        let version = stores[store].clock
        if version <= lastVersion { violation = "an update time goes back" }
        lastVersion = max(lastVersion, version)
        stores[store].documents[document].count += 1
        stores[store].documents[document].version = version
        written[document] += 1
    }

    private mutating func sweep(_ store: Int, _ bounds: MoveBounds) {
        guard case .receiving(let generation, _) = stores[store].tenure else { return }
        let leavesNothing = bounds.broken.contains(.discardLeavesNothing)
        stores[store].tenure = leavesNothing ? .absent : .away(generation: generation)
        stores[store].documents = ModelStore(clock: 0).documents
    }

    // MARK: Drivers

    private mutating func step(_ server: Int, _ failure: MoveEvent.Failure?, _ bounds: MoveBounds) {
        guard let move = servers[server].move else { return }
        let request: ModelRequest
        let (source, target) = (Self.index(move.source), Self.index(move.target))
        switch move.step {
        case .ended:
            servers[server].move = nil
            return
        case .reading(let progress): return read(server, source, after: ModelProgress(progress), bounds)
        case .receiving: request = .receive(store: target, generation: move.generation)
        case .sending:
            guard let chunk = servers[server].chunk else { return }
            request = .apply(store: target, generation: move.generation, chunk)
            servers[server].chunk = nil
        case .announcing: request = .announce(generation: move.generation, target: target)
        case .releasing: request = .release(store: source, generation: move.generation, server: server)
        case .recording: request = .record(generation: move.generation, target: target)
        }
        if failure != nil { failures += 1 }
        switch failure {
        case nil: answer(server, execute(request, bounds))
        case .lost: answer(server, nil)
        case .replyLost:
            _ = execute(request, bounds)
            answer(server, nil)
        case .late:
            late.append(request)
            answer(server, nil)
        case .doubled:
            late.append(request)
            answer(server, execute(request, bounds))
        }
    }

    private mutating func answer(_ server: Int, _ reply: DatabaseMove.Reply?) {
        if let reply { servers[server].move?.receive(reply) } else { servers[server].move?.fail() }
    }

    private mutating func read(_ server: Int, _ source: Int, after progress: ModelProgress, _ bounds: MoveBounds) {
        guard let move = servers[server].move, let view = view(of: source, at: server) else {
            return answer(server, nil)
        }
        var isReleased = false
        switch view.tenure {
        case .owned: break
        case .away(let generation) where generation == move.generation: isReleased = true
        default: return answer(server, .sourceRefuses)
        }
        // A leader that was replaced lacks what the copy has from the next one.
        if let through = progress.through, view.clock < through, !bounds.broken.contains(.oldStatesAreRead) {
            return answer(server, nil)
        }
        var chunk = ModelChunk(from: progress, to: progress)
        if progress.through == nil { chunk.to.through = view.clock }
        let isRound = progress.position == ModelStore.documentCount
        if isRound {
            let through = progress.through ?? 0
            if !bounds.broken.contains(.roundsAreSkipped) {
                for (index, document) in view.documents.enumerated() where document.version > through {
                    chunk.documents[index] = document
                }
            }
            chunk.to.through = max(through, view.clock)
            if isReleased || bounds.broken.contains(.lastBeforeRelease) { chunk.last = view.clock }
        } else {
            chunk.documents[progress.position] = view.documents[progress.position]
            chunk.to.position += 1
        }
        servers[server].chunk = chunk
        let isEmpty = chunk.documents.isEmpty && chunk.last == nil
        answer(server, .chunk(.init(isEmpty: isEmpty, isShort: isRound, isReleased: isReleased)))
    }

    // MARK: What is asked of stores and the row

    /// - Returns: nil for a failure.
    private mutating func execute(_ request: ModelRequest, _ bounds: MoveBounds) -> DatabaseMove.Reply? {
        switch request {
        case .raise(let server):
            _ = raise(by: server)
            return nil
        case .receive(let store, let generation): return receive(store, generation, bounds)
        case .apply(let store, let generation, let chunk): return apply(chunk, store, generation, bounds)
        case .announce(let generation, let target):
            guard isRow(of: generation, target, bounds) else { return .row(isDone: false) }
            row.isReleasing = true
            return .row(isDone: true)
        case .release(let store, let generation, let server):
            if stores[store].leader == server { return release(store, generation) }
            guard bounds.broken.contains(.releaseIsStaged) else { return nil }
            servers[server].views[store]?.tenure = .away(generation: generation)
            return .released
        case .record(let generation, let target):
            guard isRow(of: generation, target, bounds) else { return .row(isDone: false) }
            row = DatabaseRow(store: "\(target)", generation: row.generation)
            wasNamed[target] = true
            return .row(isDone: true)
        }
    }

    private func isRow(of generation: UInt64, _ target: Int, _ bounds: MoveBounds) -> Bool {
        if bounds.broken.contains(.rowIgnoresGeneration) { return true }
        return row.generation == generation && row.movingTo == "\(target)"
    }

    private mutating func receive(
        _ store: Int, _ generation: UInt64, _ bounds: MoveBounds
    ) -> DatabaseMove.Reply? {
        switch stores[store].tenure {
        case .owned(let own): return own > generation ? .targetRefuses : .owned(generation: own)
        case .receiving(generation, let progress): return .receiving(progress.coded)
        case .away(let known), .receiving(let known, _):
            if known >= generation, !bounds.broken.contains(.targetForgetsGeneration) { return .targetRefuses }
        case .absent: break
        }
        stores[store].tenure = .receiving(generation: generation, ModelProgress())
        stores[store].documents = ModelStore(clock: 0).documents
        return .receiving(ModelProgress().coded)
    }

    private mutating func apply(
        _ chunk: ModelChunk, _ store: Int, _ generation: UInt64, _ bounds: MoveBounds
    ) -> DatabaseMove.Reply? {
        if case .owned(let own) = stores[store].tenure { return .owned(generation: own) }
        guard case .receiving(generation, let progress) = stores[store].tenure else { return nil }
        guard progress == chunk.from || bounds.broken.contains(.chunksContinueNothing) else {
            return .receiving(progress.coded)
        }
        for (index, document) in chunk.documents { stores[store].documents[index] = document }
        stores[store].clock += 1
        guard let last = chunk.last else {
            stores[store].tenure = .receiving(generation: generation, chunk.to)
            return .receiving(chunk.to.coded)
        }
        stores[store].tenure = .owned(generation: generation)
        if !bounds.broken.contains(.clockStays) { stores[store].clock = max(stores[store].clock, last + 1) }
        return .owned(generation: generation)
    }

    private mutating func release(_ store: Int, _ generation: UInt64) -> DatabaseMove.Reply? {
        switch stores[store].tenure {
        case .owned(let own) where own < generation:
            stores[store].clock += 1
            stores[store].tenure = .away(generation: generation)
            return .released
        case .away(generation): return .released
        default: return .sourceRefuses
        }
    }

    // MARK: What must hold

    private mutating func check() {
        if violation != nil { return }
        let owners = stores.indices.filter { stores[$0].isOwner }
        if owners.count > 1 {
            violation = "two stores admit commits"
        } else if owners.contains(where: { stores[$0].documents.map(\.count) != written }) {
            violation = "an acknowledged write is lost or doubled"
        } else if !row.isReleasing, owners != [Self.index(row.store)] {
            violation = "the store of the row does not serve the database"
        } else if stores.contains(where: { !$0.isRaised && $0.hasMoved }) {
            violation = "a log has records of a move at a lower level"
        } else if stores.indices.contains(where: { wasNamed[$0] && stores[$0].tenure == .absent }) {
            violation = "a store that had the database would make it again"
        }
    }

    /// What is wrong after everything that can still be done was done, without further failures; nil if nothing is.
    func end(_ bounds: MoveBounds) -> String? {
        var world = self
        world.servers = [ModelServer(), ModelServer()]
        world.late = []
        for store in world.stores.indices where world.isLeftOver(store) { world.perform(.sweep(store), bounds) }
        let leader = world.stores[Self.index(world.row.store)].leader
        let target = world.row.movingTo
        world.perform(.look(leader), bounds)
        for _ in 0..<40 where world.servers[leader].move != nil { world.perform(.step(leader, nil), bounds) }
        if let violation = world.violation { return violation }
        if let target, world.row.store != target { return "the move does not end" }
        if world.row.movingTo != nil { return "the row still has a move" }
        return nil
    }
}
