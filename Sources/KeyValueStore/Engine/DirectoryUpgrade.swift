// The upgrade from formats 1 and 2: the entries of the tree become a run.
//
//   1. `runs/` is created with all entries and a manifest
//   2. FORMAT is set to the current one
//   3. `tree/` is removed
//
// A process that ends before 2 leaves a directory of the old format, and the next process starts over. After 2 only 3
// remains. The log is the same in all formats.

extension DirectoryFormat {
    /// Gives a directory of an older format the current one. The disk must have room for the entries a second time.
    /// - Throws: `corrupt`, `full`, `inputOutput`; the directory can be opened again then.
    static func upgrade(_ directory: String, _ options: EngineOptions) throws(StorageError) {
        try remove(directory + "/upgrade")
        let tree = try openTree(directory)
        let contents = try tree.newest()
        let state = try tree.state(contents)
        let runs = directory + "/runs"
        try RunStore.create(runs)
        var source = try TreeEntries(contents.snapshot, upTo: state.checkpoint.microseconds)
        var versions = VersionRange()
        while let entry = unsafe try source.next() { unsafe versions.add(entry.version) }
        source = try TreeEntries(contents.snapshot, upTo: state.checkpoint.microseconds)
        var manifest = Manifest()
        manifest.checkpoint = state.checkpoint
        manifest.firstSegment = state.firstSegment
        manifest.horizon = state.horizon
        if let range = versions.range {
            var parts: [Manifest.Part] = []
            var entry = unsafe try source.next()
            while unsafe entry != nil {
                let number = manifest.takeNumber()
                let writer = try RunWriter(
                    path: runs + "/" + RunFormat.fileName(number), versions: range,
                    scannedSpaces: options.scannedSpaces, hashSeed: manifest.hashSeed)
                unsafe parts.append(
                    try write(&source, from: &entry, writer, number, options.runFileBytesMax))
            }
            manifest.runs = [Manifest.Run(number: manifest.takeNumber(), level: 1, parts: parts)]
        }
        try manifest.write(in: runs, space: nil)
        try create(directory)
    }

    /// The tree of a directory of format 1 or 2; it is only read.
    static func openTree(_ directory: String) throws(StorageError) -> TreeFile {
        let isSummed = try read(directory + "/FORMAT") != .one
        let path = directory + "/tree"
        let tree = try TreeFile(directory: path, isSummed: isSummed)
        if isSummed { return tree }
        // A process of format 2 that ended while it upgraded a tree has left one with sums and the old FORMAT.
        let isUpgraded = unsafe try tree.stateBytes(try tree.newest()).count == TreeState.byteCount
        return isUpgraded ? try TreeFile(directory: path, isSummed: true) : tree
    }

    /// Writes one file of the run, from an entry on.
    private static func write(
        _ source: inout TreeEntries, from next: inout TreeEntries.Entry?, _ writer: consuming RunWriter,
        _ number: UInt64, _ byteCountMax: Int
    ) throws(StorageError) -> Manifest.Part {
        var last: UInt64?
        while let entry = unsafe next {
            let isSameKey = unsafe last != nil && compareBytes(entry.key, writer.lastKey) == 0
            if !isSameKey {
                if writer.byteCount >= byteCountMax { break }
                last = nil
            }
            unsafe try writer.add(entry.key, version: entry.version, entry.value, superseded: last)
            unsafe last = entry.version
            unsafe next = try source.next()
        }
        let (footer, byteCount) = try writer.finish()
        return Manifest.Part(file: number, identity: footer.identity, byteCount: UInt64(byteCount))
    }

    /// Removes the tree of a directory that has been upgraded.
    static func removeTree(_ directory: String) throws(StorageError) {
        try remove(directory + "/upgrade")
        try remove(directory + "/tree")
    }

    private static func remove(_ directory: String) throws(StorageError) {
        guard Directory.exists(directory) else { return }
        for name in try Directory.names(in: directory) { try Directory.removeFile(directory + "/" + name) }
        try Directory.remove(directory)
    }
}

/// The lowest and the highest of some versions.
private struct VersionRange {
    private(set) var range: ClosedRange<UInt64>?

    mutating func add(_ version: UInt64) {
        guard let range else { return self.range = version...version }
        self.range = min(range.lowerBound, version)...max(range.upperBound, version)
    }
}
