// A store leaves its database: `hearth migrate` makes a data directory of it.
//
//     level 1 ──► leaving ──► moved        the directory takes writes only after the row says "moved"
//        ▲           │          │
//        └───────────┴──────────┘          taken back, by the attempt that the row has as holder
//
// Each attempt has an identity. Its answers may be lost, and a statement may be executed long after that:
//
// - The lock-out names the epoch and the level that the attempt has seen. Taking it back raises the epoch, so a
//   lock-out that comes later changes nothing.
// - The other steps name the attempt. The lock-out of another attempt takes its place in the row, so a step of the
//   earlier one that comes later changes nothing.
// - Each step may be repeated. Its row says what has become of the store.

package import Replication

extension StoreTables {
    /// Locks the servers out, if the row is as it was seen: nothing is appended after it. A store that was moved stays
    /// moved.
    ///
    /// - Parameter seen: of a store of ``level`` or above ``leavingLevel``.
    package func lockingOut(_ seen: StoreRow, for attempt: ServerIdentity) -> SQLStatement {
        changing(
            """
            UPDATE hearth.stores SET level = greatest(level, \(Self.leavingLevel)), epoch = epoch + 1,
                renewals = renewals + 1, holder_high = $4::bigint, holder_low = $5::bigint, address = ''
            WHERE name = $1::text AND epoch = $2::bigint AND level = $3::bigint
            """,
            [
                .number(seen.lease.epoch.number), .number(seen.level), .number(attempt.high), .number(attempt.low),
            ])
    }

    /// Enters that the store is moved: the directory of the attempt may take writes from now on.
    package func leaving(for attempt: ServerIdentity) -> SQLStatement {
        changing(
            """
            UPDATE hearth.stores SET level = \(Self.movedLevel)
            WHERE name = $1::text AND level >= \(Self.leavingLevel) AND holder_high = $2::bigint
                AND holder_low = $3::bigint
            """, [.number(attempt.high), .number(attempt.low)])
    }

    /// Has the cluster take writes again after the lock-out of an attempt whose directory does not exist, whether or
    /// not the lock-out has been executed. For a store that was not moved before it.
    ///
    /// - Parameter seen: what the lock-out named.
    package func takingBack(_ seen: StoreRow, from attempt: ServerIdentity) -> SQLStatement {
        changing(
            """
            UPDATE hearth.stores SET level = \(Self.level), epoch = epoch + 1, renewals = renewals + 1,
                holder_high = 0, holder_low = 0
            WHERE name = $1::text AND (epoch = $2::bigint AND level = $3::bigint
                OR level >= \(Self.leavingLevel) AND holder_high = $4::bigint AND holder_low = $5::bigint)
            """,
            [
                .number(seen.lease.epoch.number), .number(seen.level), .number(attempt.high), .number(attempt.low),
            ])
    }
}
