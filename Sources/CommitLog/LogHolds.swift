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
        /// The last stream of the holder.
        var stream: UInt64
        /// Since when the holder is away, in milliseconds of the monotonic clock; nil while it is there.
        var awaySince: UInt64?
    }

    private let holds = Mutex<[LogHolder: Hold]>([:])

    /// How long records are kept for a follower that is away, in milliseconds.
    static let awayMillisecondsMax: UInt64 = 600_000
    /// Holders at once. A further one takes the place of one that is away, or gets none.
    static let holdersMax = 32

    /// Keeps the records after a version. A stream of a holder moves forward only. A later stream begins where it says:
    /// its holder may lack what an earlier one has sent.
    ///
    /// - Parameters:
    ///   - stream: of the holder; a later one has a higher number. An earlier one changes nothing any more.
    ///   - bytesMax: counts when the holder is new.
    func hold(_ holder: LogHolder, stream: UInt64 = 0, after version: CommitVersion, bytesMax: Int) {
        holds.withLock { holds in
            if var known = holds[holder] {
                if stream < known.stream { return }
                known.version = stream > known.stream ? version : max(known.version, version)
                known.stream = stream
                known.awaySince = nil
                holds[holder] = known
                return
            }
            if holds.count >= Self.holdersMax {
                let away = holds.compactMap { entry in entry.value.awaySince.map { (entry.key, $0) } }
                guard let oldest = away.min(by: { $0.1 < $1.1 }) else { return }
                holds[oldest.0] = nil
            }
            holds[holder] = Hold(version: version, bytesMax: bytesMax, stream: stream)
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

    /// A stream of a holder has ended. If it was the last one, the holder has gone and may come back.
    func leave(_ holder: LogHolder, stream: UInt64, nowMilliseconds: UInt64) {
        holds.withLock { holds in
            if holds[holder]?.stream == stream { holds[holder]?.awaySince = nowMilliseconds }
        }
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
