// What a server asks the database that keeps a shared log. Each statement is atomic there. Each may be lost, may be
// executed after its connection has ended, or may be executed while its reply is lost.

package import Storage

/// The row of the lease of a store.
package struct LeaseRow: Hashable, Sendable {
    package var store: StoreIdentity
    package var epoch: Epoch
    /// Changes with each renewal and take-over.
    package var renewals: UInt64
    /// Who leads, or led.
    package var holder: ServerIdentity
    /// No version or read time above it was given out, in microseconds.
    package var ceiling: UInt64

    package init(store: StoreIdentity, epoch: Epoch, renewals: UInt64, holder: ServerIdentity, ceiling: UInt64) {
        self.store = store
        self.epoch = epoch
        self.renewals = renewals
        self.holder = holder
        self.ceiling = ceiling
    }
}

/// A statement about the lease. The reply is a ``LeaseReply``.
package enum LeaseStatement: Hashable, Sendable {
    /// Creates the row, with the first epoch and without a ceiling, unless there is one.
    case create(StoreIdentity, holder: ServerIdentity)
    /// Reads the row.
    case observe
    /// Makes a server the holder in the next epoch, if epoch and renewals are those given.
    case claim(Epoch, renewals: UInt64, holder: ServerIdentity)
    /// Changes the count of renewals and raises the ceiling, if epoch and holder are those given.
    case renew(Epoch, holder: ServerIdentity, ceiling: UInt64)
    /// Begins the next epoch with the same holder, if epoch and holder are those given: what was sent in the epoch
    /// before cannot be executed any more.
    case raiseEpoch(Epoch, holder: ServerIdentity)
}

/// The row after a statement about the lease.
package struct LeaseReply: Hashable, Sendable {
    package let row: LeaseRow
    /// Whether the statement changed it.
    package let isDone: Bool

    package init(row: LeaseRow, isDone: Bool) {
        self.row = row
        self.isDone = isDone
    }
}

/// A statement about the groups. The reply is a ``LogReply``.
package enum LogStatement: Hashable, Sendable {
    /// Appends a group, if the lease has the group's epoch and the log ends with the group before.
    case append(GroupHeader)
    /// Reads the groups after a place, some or all.
    case read(after: LogPlace)
}

/// The reply to a statement about the groups.
package enum LogReply: Hashable, Sendable {
    case appended
    /// The lease has another epoch.
    case epochDiffers
    /// The log does not end with the group before.
    case chainDiffers
    /// The groups after the place, in order.
    /// - Parameter isAll: there are no further ones.
    case groups([GroupHeader], isAll: Bool)
    /// The groups after the place are trimmed; the base covers them.
    case trimmed(base: LogPlace)
    /// The place is not one of this log.
    case placeDiffers
}
