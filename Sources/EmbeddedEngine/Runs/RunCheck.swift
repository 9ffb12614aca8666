internal import Basics
internal import Storage

/// Verifies the runs of a directory that no engine has open. Changes nothing.
enum RunCheck {
    /// Reads the manifest, then every block and every entry of every file, then all entries in the order of keys.
    /// - Returns: the manifest.
    /// - Throws: `corrupt` if there is no manifest, or what it names is missing.
    static func run(
        _ directory: String, _ report: inout EngineCheck.Report, _ progress: @escaping WorkProgress.Handler
    ) throws(StorageError) -> Manifest {
        let manifest = try Manifest.read(in: directory)
        report.checkpoint = manifest.checkpoint
        report.runs = manifest.runs.count
        if manifest.horizon > manifest.checkpoint { report.note("history was removed after the checkpoint") }
        let open = try RunStore.open(manifest, in: directory)
        let set = RunSet(manifest, generation: 1, open: open)
        let entryCount = set.files.joined().reduce(0) { $0 + Int($1.footer.entryCount) }
        var meter = WorkMeter("checking the runs", total: entryCount, progress)
        for (place, files) in set.files.enumerated() {
            for (index, file) in files.enumerated() {
                if index > 0, unsafe compareBytes(files[index - 1].part.highestKey, file.part.lowestKey) >= 0 {
                    let number = manifest.runs[place].number
                    report.note("run \(number): the keys of \(file.path) are not above those before")
                }
                do throws(StorageError) {
                    try check(file, manifest, &report, &meter)
                } catch {
                    report.note(error.description)
                }
            }
        }
        // Among damaged blocks the entries of all runs cannot be compared.
        if report.problems.isEmpty {
            var meter = WorkMeter("comparing the runs", total: entryCount, progress)
            try checkAges(set, &report, &meter)
        }
        return manifest
    }

    /// Checks a file by itself: all blocks, both indexes, the order and the counts of its entries.
    private static func check(
        _ file: RunFile, _ manifest: Manifest, _ report: inout EngineCheck.Report, _ meter: inout WorkMeter
    ) throws(StorageError) {
        let part = file.part
        try part.verifyHashIndex()
        for block in 0..<part.blockCount { _ = try part.block(block) }
        try part.verifyPages()
        var slice = unsafe RunSlice(
            part: part, lowerBound: UnsafeRawBufferPointer(start: nil, count: 0), highestKey: part.highestKey)
        var counts = RunFooter()
        var failure: StorageError?
        unsafe withUnsafePointer(to: &slice) { pointer in
            do throws(StorageError) {
                var source = unsafe MergeSource(RunSlices(start: pointer, count: 1))
                defer { source.release() }
                try source.start()
                var last = LastEntry()
                while source.isAtEntry {
                    try checkEntry(
                        source, after: last, of: file, checkpoint: manifest.checkpoint, counts: &counts,
                        report: &report)
                    unsafe last.key.replaceSubrange(last.key.indices, with: source.key)
                    last.version = source.version
                    meter.step()
                    try source.next()
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        let footer = file.footer
        let isCounted =
            counts.entryCount == footer.entryCount && counts.tombstoneCount == footer.tombstoneCount
            && counts.supersededCount == footer.supersededCount
        if !isCounted { report.note("the entries of \(file.path) are not as many as its footer says") }
        try DocumentCheck.run(file, &report)
        report.entries += Int(counts.entryCount)
        report.historyEntries += Int(counts.supersededCount)
    }

    /// The entry before the one that is checked; an empty key before the first.
    private struct LastEntry {
        var key: [UInt8] = []
        var version = UInt64.max
    }

    /// Checks the entry that `source` is at, and counts it.
    private static func checkEntry(
        _ source: MergeSource, after last: LastEntry, of file: RunFile, checkpoint: CommitVersion,
        counts: inout RunFooter, report: inout EngineCheck.Report
    ) throws(StorageError) {
        let key = unsafe source.key
        let order = unsafe last.key.withUnsafeBytes { unsafe compareBytes($0, key) }
        counts.entryCount += 1
        if unsafe source.value == nil { counts.tombstoneCount += 1 }
        if order == 0 { counts.supersededCount += 1 }
        if order > 0 || order == 0 && source.version >= last.version || key.count == 0 {
            report.note("\(file.path): \(unsafe hex(key)) at version \(source.version) is out of order")
        }
        if source.version == 0 || source.version > checkpoint.microseconds {
            let version = "version \(source.version), the checkpoint is \(checkpoint)"
            report.note("\(file.path): \(unsafe hex(key)) has \(version)")
        }
        let part = file.part
        let hash = unsafe RunHashIndex.hash(key, seed: file.footer.hashSeed)
        if unsafe order != 0 && part.isHashed(key),
            unsafe try part.findNewest(key, hash: hash)?.version != source.version &- part.versionMin
        {
            report.note("\(file.path): the hash index does not lead to \(unsafe hex(key))")
        }
        let found = unsafe try part.search(key, source.version &- part.versionMin)
        if unsafe found?.version != source.version {
            report.note("\(file.path): a search does not find \(unsafe hex(key))")
        }
    }

    /// What a newer run has of a key is not older than what an older run has.
    private static func checkAges(
        _ set: RunSet, _ report: inout EngineCheck.Report, _ meter: inout WorkMeter
    ) throws(StorageError) {
        let sources = set.slices(0..<set.view.count).map { MergeSource($0) }
        guard !sources.isEmpty else { return }
        let memory = UnsafeMutablePointer<MergeSource>.allocate(capacity: sources.count)
        unsafe memory.initialize(from: sources, count: sources.count)
        defer {
            for index in sources.indices { unsafe memory[index].release() }
            unsafe memory.deallocate()
        }
        for index in sources.indices { unsafe try memory[index].start() }
        var tree = LoserTree(count: sources.count)
        tree.build { unsafe MergeSource.isBefore(memory, $0, $1) }
        var key: [UInt8] = []
        var run = 0
        while unsafe memory[tree.winner].isAtEntry {
            let winner = tree.winner
            let isSameKey = unsafe key.withUnsafeBytes { unsafe compareBytes($0, memory[winner].key) } == 0
            if isSameKey && winner < run {
                report.note("a newer run has an older version of \(unsafe hex(memory[winner].key))")
            }
            unsafe key.replaceSubrange(key.indices, with: memory[winner].key)
            run = winner
            meter.step()
            unsafe try memory[winner].next()
            tree.replay { unsafe MergeSource.isBefore(memory, $0, $1) }
        }
    }

    /// The first bytes of a key, for messages.
    static func hex(_ bytes: UnsafeRawBufferPointer) -> String {
        unsafe bytes.prefix(64).reduce(into: "0x") { text, byte in
            text += (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
    }
}
