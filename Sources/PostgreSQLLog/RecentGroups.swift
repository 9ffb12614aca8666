// The newest groups of the log, for the streams to servers that follow.

internal import Basics
package import Replication
package import Storage
internal import Synchronization

/// The newest durable groups that a server knows, without holes. Thread-safe.
package final class RecentGroups: Sendable {
    private struct State {
        /// Before the first of `groups`.
        var start: LogPlace
        /// Those before `first` have been dropped.
        var groups: [LoggedGroup] = []
        var first = 0
        var byteCount = 0
    }

    private let state: Mutex<State>

    /// Bytes of records that are kept. A server that lacks more reads the database.
    private static let bytesMax = 32 << 20
    /// Groups that are kept.
    private static let countMax = 65_536

    /// - Parameter place: what the server has at first.
    package init(after place: LogPlace) { state = Mutex(State(start: place)) }

    /// Adds the next group.
    package func note(_ group: LoggedGroup) {
        state.withLock { state in
            state.groups.append(group)
            state.byteCount += group.records.count
            while state.byteCount > Self.bytesMax || state.groups.count - state.first > Self.countMax {
                let oldest = state.groups[state.first]
                state.start = oldest.header.place
                state.byteCount -= oldest.records.count
                state.groups[state.first] = LoggedGroup(header: oldest.header, records: [], derived: [])
                state.first += 1
            }
            guard state.first > 1_024, state.first > state.groups.count / 2 else { return }
            state.groups.removeFirst(state.first)
            state.first = 0
        }
    }

    /// The groups after a place: at least one if there are any, and no further ones beyond a number of bytes.
    /// - Returns: nil if the place is not one that is known.
    package func groups(afterSequence sequence: UInt64, hash: UInt64, bytesMax: Int) -> [LoggedGroup]? {
        state.withLock { state in
            guard sequence >= state.start.sequence else { return nil }
            let kept = state.groups[state.first...]
            let count = Int(clamping: sequence - state.start.sequence)
            guard count <= kept.count else { return nil }
            let known = count == 0 ? state.start.hash : kept[kept.startIndex + count - 1].header.hash
            guard known == hash else { return nil }
            var found: [LoggedGroup] = []
            var bytes = 0
            for group in kept.dropFirst(count) {
                if !found.isEmpty, bytes + group.records.count > bytesMax { break }
                found.append(group)
                bytes += group.records.count
            }
            return found
        }
    }

    /// The records of the groups after a version, as ``SharedLog/records(after:bytesMax:)`` has them.
    /// - Returns: nil if some of them are not kept any more.
    func records(after version: UInt64, bytesMax: Int) -> [UInt8]? {
        state.withLock { state in
            guard version >= state.start.version else { return nil }
            let kept = state.groups[state.first...]
            var bytes: [UInt8] = []
            for group in kept[kept.partitioningIndex { $0.header.version > version }...] {
                if !bytes.isEmpty, bytes.count + group.records.count > bytesMax { break }
                bytes += group.records
            }
            return bytes
        }
    }

    /// The version before the first group that is kept.
    var startVersion: UInt64 { state.withLock { $0.start.version } }
}

extension MemberDriver {
    package func records(after version: CommitVersion, bytesMax: Int) throws(StorageError) -> [UInt8] {
        // The groups of the result may be dropped from memory while the database is read: then they are there.
        if let records = recent.records(after: version.microseconds, bytesMax: bytesMax) { return records }
        return try history.records(after: version.microseconds, upTo: recent.startVersion, bytesMax: bytesMax)
    }

    package func recordsStart() throws(StorageError) -> CommitVersion {
        CommitVersion(microseconds: try history.startVersion())
    }

    package func durableGroups(after place: SharedLogPlace, bytesMax: Int) -> SharedLogGroups? {
        guard place.store == settings.store,
            let groups = recent.groups(afterSequence: place.sequence, hash: place.hash, bytesMax: bytesMax)
        else { return nil }
        var bytes: [UInt8] = []
        for group in groups { group.encode(into: &bytes) }
        guard let last = groups.last?.header else { return SharedLogGroups(bytes: [], end: place) }
        return SharedLogGroups(
            bytes: bytes, end: SharedLogPlace(store: place.store, sequence: last.sequence, hash: last.hash))
    }
}
