// Where an engine in memory keeps its state: what a data directory is to the embedded engine.

internal import Basics
internal import Storage

/// The contents of an engine in memory. They outlive the engine, so that a store can be closed and opened again.
///
/// Thread-safe. One engine at a time has a volume open.
package final class MemoryVolume: Sendable {
    /// Guarded by one lock, for readers too: the engine is made to be simple.
    struct Contents {
        var table = MemoryTable()
        /// Versions up to here are durable and visible; those above are staged.
        var published: UInt64 = 0
        /// Opening replays the records above this version.
        var checkpoint: UInt64 = 0
        /// Snapshots below are refused; at most `checkpoint`.
        var horizon: UInt64 = 0
        /// Records of published commits above `checkpoint`, if they are kept.
        var records: [(version: UInt64, bytes: [UInt8])] = []
        /// Entries with a version that another has superseded or that is a deletion, and the version that did so. In
        /// its order.
        var superseded: [(version: UInt64, entry: MemoryEntry)] = []
        var supersededStart = 0
        /// Open snapshots by version.
        var snapshots: [UInt64: Int] = [:]
        var isOpen = false
        /// Nil until the volume is opened.
        var timelineStart: UInt64?
        var groups: UInt64 = 0
    }

    let contents: Monitor<Contents>

    /// Opening replays the commits since the last checkpoint, as the embedded engine does after a crash. For tests of
    /// recovery: the records take memory.
    let replaysRecords: Bool

    /// A group with a completion is published by a thread, while the next one is staged. For tests.
    let syncsInBackground: Bool

    /// An empty volume.
    package init(replaysRecords: Bool = false, syncsInBackground: Bool = false) {
        self.replaysRecords = replaysRecords
        self.syncsInBackground = syncsInBackground
        contents = Monitor(Contents())
    }

    private init(_ contents: Contents, of volume: MemoryVolume) {
        replaysRecords = volume.replaysRecords
        syncsInBackground = volume.syncsInBackground
        self.contents = Monitor(contents)
    }

    /// A copy of what is durable now: what a crash at this moment would leave.
    package func copy() -> MemoryVolume {
        let copied = contents.withLock { contents in
            var copy = contents.rolledBack(to: contents.published)
            copy.snapshots = [:]
            copy.isOpen = false
            return copy
        }
        return MemoryVolume(copied, of: self)
    }
}

extension MemoryVolume.Contents {
    /// The same without the versions above `version`. Shares no entry.
    func rolledBack(to version: UInt64) -> Self {
        var copy = self
        let entries = table.all.compactMap { $0.copied(upTo: version) }
        copy.table = MemoryTable(sorted: entries)
        copy.superseded = []
        copy.supersededStart = 0
        for entry in entries {
            for (index, version) in entry.versions.enumerated() where index > 0 || version.value == nil {
                copy.superseded.append((version.version, entry))
            }
        }
        copy.superseded.sort { $0.version < $1.version }
        return copy
    }

    /// Adds a commit's mutations; readers see them when the version is published.
    mutating func insert(_ mutations: borrowing MutationBatch, version: UInt64) {
        unsafe mutations.forEachEntry(from: 0, atMost: .max) { mutation in
            let value = unsafe mutation.value.map { unsafe MemoryBytes($0) }
            if let entry = unsafe table.entry(of: mutation.key) {
                entry.append(MemoryVersion(version: version, value: value))
                superseded.append((version, entry))
            } else if let value {
                let entry = unsafe MemoryEntry(
                    key: MemoryBytes(mutation.key), [MemoryVersion(version: version, value: value)])
                table.insert(entry)
            }
        }
    }

    /// Raises the horizon, and removes the versions that no snapshot can ask for any more.
    mutating func raiseHorizon(to version: UInt64) {
        horizon = max(horizon, min(version, checkpoint))
        let limit = min(horizon, snapshots.keys.min() ?? .max)
        while supersededStart < superseded.count, superseded[supersededStart].version <= limit {
            let entry = superseded[supersededStart].entry
            supersededStart += 1
            if !entry.versions.isEmpty, !entry.removeSuperseded(upTo: limit) { unsafe table.remove(entry.key.bytes) }
        }
        if supersededStart > superseded.count / 2 {
            superseded.removeSubrange(0..<supersededStart)
            supersededStart = 0
        }
    }

    /// Marks everything published as not to be replayed.
    mutating func setCheckpoint() {
        checkpoint = published
        records.removeAll()
    }
}
