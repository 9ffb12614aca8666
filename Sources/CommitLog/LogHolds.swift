// Who has not taken all records of a log yet.
//
// A checkpoint trims the log up to what is in the runs. Records that an archive or a follower has not taken are kept
// beyond that, for each one up to a bound.

internal import Basics
internal import Storage
internal import Synchronization

/// One that takes the records of a log.
package enum LogHolder: Hashable, Sendable {
    case archive
    /// A follower, by a number of its choice.
    case follower(UInt64)
}

/// Up to where each holder has taken the records. Thread-safe.
final class LogHolds: Sendable {
    struct Hold {
        /// Records after this version are kept.
        var version: CommitVersion
        /// Bytes that are kept at most.
        let bytesMax: Int
        /// Since when the holder is away, in milliseconds of the monotonic clock; nil while it is there.
        var awaySince: UInt64?
    }

    private let holds = Mutex<[LogHolder: Hold]>([:])

    /// How long records are kept for a follower that is away, in milliseconds.
    static let awayMillisecondsMax: UInt64 = 600_000
    /// Holders at once. A further one takes the place of one that is away, or gets none.
    static let holdersMax = 32

    /// Keeps the records after a version. A holder moves forward only.
    ///
    /// - Parameter bytesMax: counts when the holder is new.
    func hold(_ holder: LogHolder, after version: CommitVersion, bytesMax: Int) {
        holds.withLock { holds in
            if var known = holds[holder] {
                known.version = max(known.version, version)
                known.awaySince = nil
                holds[holder] = known
                return
            }
            if holds.count >= Self.holdersMax {
                let away = holds.compactMap { entry in entry.value.awaySince.map { (entry.key, $0) } }
                guard let oldest = away.min(by: { $0.1 < $1.1 }) else { return }
                holds[oldest.0] = nil
            }
            holds[holder] = Hold(version: version, bytesMax: bytesMax)
        }
    }

    /// Moves a holder that is known.
    func move(_ holder: LogHolder, to version: CommitVersion) {
        holds.withLock { holds in
            guard let known = holds[holder] else { return }
            holds[holder]?.version = max(known.version, version)
        }
    }

    /// What is kept for a holder: the records after a version, up to a number of bytes; nil if nothing is.
    func hold(of holder: LogHolder) -> (version: CommitVersion, bytesMax: Int)? {
        holds.withLock { holds in holds[holder].map { ($0.version, $0.bytesMax) } }
    }

    /// The holder has gone and may come back.
    func leave(_ holder: LogHolder, nowMilliseconds: UInt64) {
        holds.withLock { $0[holder]?.awaySince = nowMilliseconds }
    }

    /// The holds that count now.
    func all(nowMilliseconds: UInt64) -> [Hold] {
        holds.withLock { holds in
            holds = holds.filter { entry in
                entry.value.awaySince.map { nowMilliseconds < $0 + Self.awayMillisecondsMax } ?? true
            }
            return Array(holds.values)
        }
    }
}
