// Looking a key up: the newest version that is not too new, in the active overlay, the frozen one, or the tree.

/// The overlays and the tree as one reader sees them at one version. Valid until the reader closes it.
/// Plain numbers and addresses: copying one counts no references.
@safe
struct ReadView {
    let active: Overlay
    let frozen: Overlay?
    /// The generation of the overlays.
    let generation: UInt64
    let transaction: OpaquePointer
    let tree: TreeSnapshot
    private(set) var version: UInt64
    /// The tree may hold commits after the version.
    private(set) var needsHistory: Bool
    let latestOnly: LatestOnlySpaces
    /// Places of entries in the tree of `transaction`; nil if they are of another tree.
    let cache: EntryCache?

    /// Makes this the view of the same memtables and tree at another version.
    mutating func move(to version: UInt64, needsHistory: Bool) {
        self.version = version
        self.needsHistory = needsHistory
    }

    /// What a key has at the version.
    func find(_ key: UnsafeRawBufferPointer) throws(StorageError) -> FoundEntry {
        guard key.count > 0, key.count <= EngineLimits.keyBytesMax else {
            return unsafe FoundEntry(bytes: nil, version: 0)
        }
        let hash = unsafe Overlay.hash(key)
        if let found = unsafe Self.find(key, hash, in: active, atMost: version) { return unsafe found }
        if let frozen, let found = unsafe Self.find(key, hash, in: frozen, atMost: version) { return unsafe found }
        let found = unsafe try tree.find(
            key, hash: hash, version: version, needsHistory: needsHistory, latestOnly: latestOnly, cache)
        return unsafe FoundEntry(bytes: found?.bytes, version: found?.version ?? 0)
    }

    private static func find(
        _ key: UnsafeRawBufferPointer, _ hash: UInt64, in overlay: Overlay, atMost version: UInt64
    ) -> FoundEntry? {
        guard overlay.mayContain(hash: hash) else { return nil }
        let entry = unsafe overlay.find(key, atMost: version)
        if entry == 0 { return nil }
        return unsafe FoundEntry(bytes: overlay.value(entry), version: overlay.version(entry))
    }
}

/// A value where it lies, or none; and the version of the commit that put or deleted it, as far as known.
@unsafe
struct FoundEntry {
    let bytes: UnsafeRawBufferPointer?
    let version: UInt64
}
