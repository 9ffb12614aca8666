/// What a server of a cluster knows of itself, for metrics.
package struct ClusterFigures: Sendable {
    /// Whether this server leads and no other can.
    package var leads = false
    /// In which this server leads or led, or that it saw last.
    package var epoch: UInt64 = 0
    /// The last group of the log that this server has.
    package var sequence: UInt64 = 0
    /// Milliseconds since the database answered last.
    package var silenceMilliseconds: UInt64 = 0
    /// Groups that this server appended.
    package var groupsAppended: UInt64 = 0
    /// Bytes of their records.
    package var bytesAppended: UInt64 = 0
    /// Groups of other servers that were applied.
    package var groupsApplied: UInt64 = 0
    /// Those of them that came over the stream of the leader.
    package var groupsStreamed: UInt64 = 0
    /// Appends whose outcome had to be looked up.
    package var outcomesUnknown: UInt64 = 0

    /// What this server has done about bases.
    package var bases = Bases()

    /// Where the log of the store lies: `home`, or the address of a database, without a password. Nil if it is the only
    /// store.
    package var database: String?
    /// Milliseconds since the database with the table of databases answered last; nil if it is the only store.
    package var homeSilenceMilliseconds: UInt64?
    /// Of databases that this server has moved away from the store; nil if it is the only store.
    package var moves: Moves?

    package init() {}

    /// What a server has done about bases of the store.
    package struct Bases: Sendable {
        package var made: UInt64 = 0
        /// Attempts that came to nothing.
        package var failed: UInt64 = 0
        /// Of the last base that this server made: its bytes, and how long it took.
        package var lastBytes: UInt64 = 0
        package var lastMilliseconds: UInt64 = 0
        /// Whether this server has the directory for bases; nil without one, and before it is used.
        package var isReachable: Bool?

        package init() {}
    }

    /// What moves of databases have come to.
    package struct Moves: Sendable {
        /// Those under way.
        package var active = 0
        package var completed: UInt64 = 0
        /// Documents that were sent to other stores.
        package var documents: UInt64 = 0
        /// How long no store took commits to the database in the last move, in milliseconds.
        package var lastPauseMilliseconds: UInt64 = 0

        package init() {}
    }
}
