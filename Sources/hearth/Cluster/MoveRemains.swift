// What moves leave in stores that do not have the database.

import DocumentStore
import Replication

/// What a store has of a database that is not its own, and shall not keep.
enum MoveRemains: Equatable {
    /// What was received for a move that is over.
    case received
    /// The documents of a database that has moved away.
    case copy

    /// How long the copy stays after the release, in microseconds: results of commits are found in it until then.
    static let copyMicroseconds: UInt64 = 3_600_000_000

    /// Whether there may be something, as far as the store knows.
    static func mayBe(_ tenure: DatabaseTenure) -> Bool {
        tenure.state == .receiving || tenure.state == .released && tenure.isCopyLeft
    }

    /// - Parameters:
    ///   - store: the name of the store.
    ///   - row: of the database, read after the tenure.
    /// - Returns: nil if nothing is to be removed.
    init?(_ tenure: DatabaseTenure, in store: String, _ row: DatabaseRow, nowMicroseconds: UInt64) {
        switch tenure.state {
        case .receiving where row.generation != tenure.generation || row.movingTo != store: self = .received
        case .released where tenure.isCopyLeft && row.store != store && row.movingTo != store:
            guard nowMicroseconds >= tenure.version + Self.copyMicroseconds else { return nil }
            self = .copy
        default: return nil
        }
    }
}
