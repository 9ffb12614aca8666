// The database of a store as the explorer has it: statements are executed one at a time, by rules that can be broken.

@testable import Replication

/// A statement of either kind.
enum AnyStatement: Hashable {
    case lease(LeaseStatement)
    case log(LogStatement)
}

/// A reply of either kind.
enum AnyReply: Hashable {
    case lease(LeaseReply)
    case log(LogReply)
}

/// Row, groups and base of one store.
struct ModelDatabase: Hashable {
    var row: LeaseRow?
    /// All groups ever appended.
    var groups: [GroupHeader] = []
    /// Groups up to this sequence are trimmed, and covered by a base.
    var trimmedThrough = 0

    /// Rules that a planted fault breaks.
    struct Broken: OptionSet, Hashable {
        let rawValue: Int
        static let appendIgnoresEpoch = Broken(rawValue: 1)
        static let appendIgnoresChain = Broken(rawValue: 2)
        static let claimIgnoresRenewals = Broken(rawValue: 4)
        static let claimForgetsCeiling = Broken(rawValue: 8)
        static let renewIgnoresEpoch = Broken(rawValue: 16)
        static let appendTakesEarlierEpoch = Broken(rawValue: 32)
        static let readSkipsTrimmed = Broken(rawValue: 64)
    }

    mutating func execute(_ statement: AnyStatement, broken: Broken) -> AnyReply {
        switch statement {
        case .lease(let statement): .lease(execute(statement, broken: broken))
        case .log(let statement): .log(execute(statement, broken: broken))
        }
    }

    private mutating func execute(_ statement: LeaseStatement, broken: Broken) -> LeaseReply {
        var isDone = false
        if case .create(let store, let holder) = statement, row == nil {
            row = LeaseRow(store: store, epoch: Epoch(1), renewals: 0, holder: holder, ceiling: 0)
            isDone = true
        }
        var row = row!
        switch statement {
        case .create, .observe: break
        case .claim(let epoch, let renewals, let holder):
            guard row.epoch == epoch, row.renewals == renewals || broken.contains(.claimIgnoresRenewals) else { break }
            row.epoch = epoch.next
            row.renewals += 1
            row.holder = holder
            if broken.contains(.claimForgetsCeiling) { row.ceiling = 0 }
            isDone = true
        case .renew(let epoch, let holder, let ceiling):
            guard row.epoch == epoch && row.holder == holder || broken.contains(.renewIgnoresEpoch) else { break }
            row.renewals += 1
            row.ceiling = max(row.ceiling, ceiling)
            isDone = true
        case .raiseEpoch(let epoch, let holder):
            guard row.epoch == epoch, row.holder == holder else { break }
            row.renewals += 1
            row.epoch = epoch.next
            isDone = true
        }
        self.row = row
        return LeaseReply(row: row, isDone: isDone)
    }

    private mutating func execute(_ statement: LogStatement, broken: Broken) -> LogReply {
        switch statement {
        case .append(let group):
            let isEarlier = group.epoch.next == row?.epoch && broken.contains(.appendTakesEarlierEpoch)
            guard group.epoch == row?.epoch || isEarlier || broken.contains(.appendIgnoresEpoch) else {
                return .epochDiffers
            }
            guard group.follows(end) || broken.contains(.appendIgnoresChain) else { return .chainDiffers }
            groups.append(group)
            return .appended
        case .read(let place):
            let sequence = Int(place.sequence)
            if sequence > groups.count { return .placeDiffers }
            if sequence < trimmedThrough, !broken.contains(.readSkipsTrimmed) {
                return .trimmed(base: groups[trimmedThrough - 1].place)
            }
            if sequence > 0, groups[sequence - 1].hash != place.hash { return .placeDiffers }
            return .groups(Array(groups[max(sequence, trimmedThrough)...]), isAll: true)
        }
    }

    var end: LogPlace { groups.last?.place ?? .start }
}
