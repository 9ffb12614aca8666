internal import Basics
internal import CommitLog
internal import FileSystem
internal import Storage
internal import Synchronization

/// Writes a frozen memtable as a run: one pass over its entries, which are in order.
///
/// The manifest gets the run, the version that the runs have reached, and the position where the log continues, all at
/// once. Before that the files are not needed, and recovery removes them.
struct Checkpoint {
    let core: EngineCore
    let memtable: Memtable
    private(set) var entryCount: UInt64 = 0

    init(core: EngineCore, memtable: Memtable) {
        self.core = core
        self.memtable = memtable
    }

    /// Writes the memtable; when this returns the runs hold every commit up to the memtable's last.
    /// - Parameter logStart: a position of the log from which all commits after the memtable's can be read.
    /// - Throws: `full`, `inputOutput`; then nothing has changed, and the files are removed.
    mutating func run(logStart: LogPosition) throws(StorageError) {
        try core.runs.checkBound(adding: memtable.runBytesMax)
        var written: [Manifest.Part] = []
        do throws(StorageError) {
            try write(memtable, &written)
            try core.options.sharedLog?.willCheckpoint(memtable.versionMax)
        } catch {
            core.runs.remove(written)
            throw error
        }
        let parts = written
        let number = core.runs.takeNumber()
        try core.runs.change(.commitRun) { manifest in
            manifest.checkpoint = max(manifest.checkpoint, memtable.versionMax)
            manifest.logStart = logStart
            manifest.runs.insert(Manifest.Run(number: number, level: 0, parts: parts), at: 0)
        }
        core.counters.addRunBytes(written.reduce(0) { $0 + Int($1.byteCount) }, level: 0)
    }

    private mutating func write(_ memtable: Memtable, _ parts: inout [Manifest.Part]) throws(StorageError) {
        let byteCountMax = core.runFileBytes
        var walk = MemtableWalk(memtable)
        while walk.entry != 0 {
            let number = try core.runs.takeFileNumber()
            let kind = unsafe RunKind(of: memtable.key(walk.entry))
            do throws(StorageError) {
                let writer = try RunWriter(
                    directory: core.runs.directory, number: number, kind: kind,
                    versions: memtable.versionMin...memtable.versionMax.microseconds, latestOnly: core.latestOnly,
                    scannedSpaces: core.options.scannedSpaces, hashSeed: core.hashSeed,
                    space: (core.runs.space, .checkpoint))
                parts.append(try write(memtable, from: &walk, writer, (number, kind), byteCountMax))
            } catch {
                core.runs.remove(number, kind)
                throw error
            }
        }
    }

    /// Writes one file, from the position of a walk on.
    private mutating func write(
        _ memtable: Memtable, from walk: inout MemtableWalk, _ writer: consuming RunWriter,
        _ file: (number: UInt64, kind: RunKind), _ byteCountMax: Int
    ) throws(StorageError) -> Manifest.Part {
        let horizon = core.horizon.load(ordering: .acquiring)
        while walk.entry != 0, writer.byteCount < byteCountMax {
            let key = unsafe memtable.key(walk.entry)
            guard unsafe writer.takes(key) else { break }
            let hasHistory = unsafe !core.latestOnly.contains(key)
            var version = memtable.version(walk.entry)
            unsafe try writer.add(key, version: version, memtable.value(walk.entry), superseded: nil)
            entryCount &+= 1
            walk.next()
            while unsafe walk.entry != 0 && compareBytes(memtable.key(walk.entry), key) == 0 {
                let older = memtable.version(walk.entry)
                if hasHistory && version > horizon {
                    unsafe try writer.add(key, version: older, memtable.value(walk.entry), superseded: version)
                    entryCount &+= 1
                }
                version = older
                walk.next()
            }
        }
        let (footer, byteCount) = try writer.finish()
        return Manifest.Part(
            file: file.number, identity: footer.identity, byteCount: UInt64(byteCount), kind: file.kind)
    }
}
