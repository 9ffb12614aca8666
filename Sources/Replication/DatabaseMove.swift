// The move of a database from one store to another: what the leader of the source does next.
//
//     receiving ──► reading ⇄ sending ──► announcing ──► releasing ──► reading ⇄ sending ──► recording ──► ended
//         ▲           base and rounds      the row        the pause       last round          the row
//         └── (any) a request has failed, or its answer is lost
//
// What has been reached is durable elsewhere: in the row of the database, and in the logs of both stores. So a driver
// keeps nothing, and any leader of the source continues a move from its beginning: it asks the target what it has. Two
// drivers at once do no harm:
//
// - Both stores take records of moves before the row can name a move. A store that lies in another database is
//   raised there first; that is noted beside the row afterwards, and never taken back. So no transaction spans two
//   databases.
// - The row changes only as long as it has the generation of the move. It is announced there that the source will
//   release the database, before it does so: from then on the move cannot be given up.
// - The source releases the database by a commit, so only its real leader does. What a leader that was replaced reads
//   is an earlier state of the same log, and true as such.
// - The target applies a chunk only if it continues what the target has. Its progress is part of the same commit.
// - The target owns the database with the commit of the last chunk, which exists only after the release.
//
// A pure state machine. It does not see what chunks carry. docs/scale.md has the rules, and what explores them.

/// The row of a database in the table that all stores share.
package struct DatabaseRow: Hashable, Sendable {
    /// The store that has the database.
    package var store: String
    /// The store to which it moves; nil if it does not.
    package var movingTo: String?
    /// Counts the moves that were asked for, and those that were given up.
    package var generation: UInt64
    /// The source releases the database, or has done so: the move cannot be given up any more.
    package var isReleasing: Bool

    package init(store: String, movingTo: String? = nil, generation: UInt64 = 0, isReleasing: Bool = false) {
        self.store = store
        self.movingTo = movingTo
        self.generation = generation
        self.isReleasing = isReleasing
    }
}

/// How far the copy of a database is, as the stores write it. It says what comes next.
package struct MoveProgress: Hashable, Sendable {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }
}

/// A move by one driver. Belongs to one thread.
package struct DatabaseMove: Hashable, Sendable {
    package let source: String
    package let target: String
    package let generation: UInt64
    package private(set) var step = Step.receiving
    /// The row says that the source releases the database.
    package private(set) var isAnnounced: Bool
    /// The source has released the database.
    package private(set) var isReleased = false

    /// What is under way.
    package enum Step: Hashable, Sendable {
        /// The target is asked to receive the database, and how far it is.
        case receiving
        /// What comes next is read at the source.
        case reading(after: MoveProgress)
        /// The target is asked to apply what was read.
        case sending(isShort: Bool)
        /// It is entered in the row that the source releases the database.
        case announcing(after: MoveProgress)
        /// The source releases the database.
        case releasing(after: MoveProgress)
        /// The store of the database is changed in the row.
        case recording
        case ended(End)
    }

    /// How a move has ended for its driver.
    package enum End: Hashable, Sendable {
        /// The target has the database, in the row too.
        case moved
        /// The row or the source has changed: another driver has ended the move, or it was given up.
        case superseded
        /// The target has the database by another way, so that it would be in two stores.
        case conflict
    }

    /// What a request has been answered.
    package enum Reply: Hashable, Sendable {
        /// The target receives the database, and is that far.
        case receiving(MoveProgress)
        /// The target owns the database since a move with a generation.
        case owned(generation: UInt64)
        /// The target has heard of a later move.
        case targetRefuses
        /// What comes next was read.
        case chunk(Chunk)
        /// The source neither owns the database nor has released it for this move.
        case sourceRefuses
        /// The source has released the database.
        case released
        /// What has become of a change of the row: whether the row was that of this move.
        case row(isDone: Bool)
    }

    /// What was read at the source.
    package struct Chunk: Hashable, Sendable {
        /// There is nothing to apply.
        package let isEmpty: Bool
        /// So little is missing after it that the last round can come.
        package let isShort: Bool
        /// The source had released the database when it was read.
        package let isReleased: Bool

        package init(isEmpty: Bool, isShort: Bool, isReleased: Bool) {
            self.isEmpty = isEmpty
            self.isShort = isShort
            self.isReleased = isReleased
        }
    }

    /// - Returns: nil if the row is not that of a move.
    package init?(_ row: DatabaseRow) {
        guard let target = row.movingTo, target != row.store else { return nil }
        source = row.store
        self.target = target
        generation = row.generation
        isAnnounced = row.isReleasing
    }

    /// Takes the answer to what was asked in the present step.
    package mutating func receive(_ reply: Reply) {
        switch (step, reply) {
        case (.ended, _): break
        case (_, .sourceRefuses), (_, .targetRefuses), (_, .row(isDone: false)): step = .ended(.superseded)
        case (_, .owned(let generation)):
            step = generation == self.generation ? .recording : .ended(.conflict)
        case (.receiving, .receiving(let progress)): step = .reading(after: progress)
        case (.reading(let progress), .chunk(let chunk)): take(chunk, after: progress)
        case (.sending(let isShort), .receiving(let progress)):
            step = isShort ? afterShortRound(progress) : .reading(after: progress)
        case (.announcing(let progress), .row):
            isAnnounced = true
            step = .releasing(after: progress)
        case (.releasing(let progress), .released):
            isReleased = true
            step = .reading(after: progress)
        case (.recording, .row): step = .ended(.moved)
        default: fail()
        }
    }

    /// A request has failed, or its answer is lost: what has become of it is found out.
    package mutating func fail() {
        if case .ended = step { return }
        step = .receiving
    }

    private mutating func take(_ chunk: Chunk, after progress: MoveProgress) {
        if chunk.isReleased { isReleased = true }
        if !chunk.isEmpty {
            step = .sending(isShort: chunk.isShort && !chunk.isReleased)
        } else if chunk.isReleased {
            // The target had all of it, and owns the database.
            step = .receiving
        } else {
            step = chunk.isShort ? afterShortRound(progress) : .reading(after: progress)
        }
    }

    private func afterShortRound(_ progress: MoveProgress) -> Step {
        if isReleased { return .reading(after: progress) }
        return isAnnounced ? .releasing(after: progress) : .announcing(after: progress)
    }
}
