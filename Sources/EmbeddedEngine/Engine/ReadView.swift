// Looking a key up: the newest version that is not too new, in the active memtable, the frozen one, or the runs.

internal import Storage

/// The memtables and the runs as one reader sees them at one version. Valid until the reader closes it.
/// Plain numbers and addresses: copying one counts no references.
@safe
struct ReadView {
    let active: Memtable
    let frozen: Memtable?
    /// The generation of the memtables and runs.
    let generation: UInt64
    private(set) var runs: RunSetView
    private(set) var version: UInt64
    let latestOnly: LatestOnlySpaces

    init(_ view: MemtableView, version: UInt64, latestOnly: LatestOnlySpaces, _ cold: ColdReads = .wait) {
        active = view.active
        frozen = view.frozen
        generation = view.generation
        runs = view.runs
        runs.cold = cold
        self.version = version
        self.latestOnly = latestOnly
    }

    /// Makes this the view of the same memtables and runs at another version.
    mutating func move(to version: UInt64, _ cold: ColdReads) {
        self.version = version
        runs.cold = cold
    }

    /// What a key has at the version.
    func find(_ key: UnsafeRawBufferPointer) throws(StorageError) -> FoundEntry {
        guard key.count > 0, key.count <= EngineLimits.keyBytesMax else {
            return unsafe FoundEntry(bytes: nil, version: 0)
        }
        let hash = unsafe RunHashIndex.hash(key, seed: runs.hashSeed)
        if let found = unsafe Self.find(key, hash, in: active, atMost: version) { return unsafe found }
        if let frozen, let found = unsafe Self.find(key, hash, in: frozen, atMost: version) { return unsafe found }
        return unsafe try findInRuns(key, hash)
    }

    private static func find(
        _ key: UnsafeRawBufferPointer, _ hash: UInt64, in memtable: Memtable, atMost version: UInt64
    ) -> FoundEntry? {
        var entry = unsafe memtable.mayContain(hash: hash) ? memtable.find(key, atMost: version) : 0
        if memtable.hasBatches, unsafe memtable.isScanned(key) {
            entry = unsafe memtable.newest(key, atMost: version, listed: entry)
        }
        if entry == 0 { return nil }
        return unsafe FoundEntry(bytes: memtable.value(entry), version: memtable.version(entry))
    }

    @inline(__always)
    private func findInRuns(_ key: UnsafeRawBufferPointer, _ hash: UInt64) throws(StorageError) -> FoundEntry {
        let versionMax = unsafe latestOnly.contains(key) ? .max : version
        return unsafe try runs.find(key, hash: hash, atMost: versionMax) ?? FoundEntry(bytes: nil, version: 0)
    }
}

/// A value where it lies, or none; and the version of the commit that put or deleted it, as far as known.
@unsafe
struct FoundEntry {
    let bytes: UnsafeRawBufferPointer?
    let version: UInt64
}
