// How much of the runs lies in a range of keys: from the indexes of the files and a few blocks, without a scan.

internal import Basics
internal import Storage

extension RunSet {
    /// What the runs have of the keys in `lower..<upper`. Of a file whose keys are all in the range it reads nothing,
    /// of another one ten blocks of data at most, and blocks of the index.
    /// - Throws: `corrupt`.
    func estimate(
        from lower: UnsafeRawBufferPointer, to upper: UnsafeRawBufferPointer
    ) throws(StorageError) -> KeyRangeEstimate {
        var estimate = KeyRangeEstimate()
        for (place, files) in files.enumerated() {
            let bound = manifest.runs[place].lowerBound
            for (index, file) in files.enumerated() {
                var start = unsafe try file.position(of: lower)
                // What a merge has moved is in its output.
                if index == 0, !bound.isEmpty { start = max(start, try file.position(of: bound)) }
                let end = unsafe try file.position(of: upper)
                guard start < end else { continue }
                estimate.entries += try file.entries(from: start, to: end)
                estimate.bytes += file.bytes(from: start, to: end)
            }
        }
        return estimate
    }
}

/// A place among the entries of a file.
private struct FilePosition: Comparable {
    var block: Int
    /// The entry in the block, and how many the block has; both 0 at the end of the file.
    var index = 0
    var count = 0

    static func < (left: FilePosition, right: FilePosition) -> Bool {
        (left.block, left.index) < (right.block, right.index)
    }

    /// The part of the block that is before the place.
    var fraction: Double { count == 0 ? 0 : Double(index) / Double(count) }
}

extension RunFile {
    fileprivate func position(of key: [UInt8]) throws(StorageError) -> FilePosition {
        var position = FilePosition(block: 0)
        var failure: StorageError?
        unsafe key.withUnsafeBytes { key in
            do throws(StorageError) { position = unsafe try self.position(of: key) } catch { failure = error }
        }
        if let failure { throw failure }
        return position
    }

    /// The first entry that is not before a key.
    fileprivate func position(of key: UnsafeRawBufferPointer) throws(StorageError) -> FilePosition {
        if unsafe compareBytes(key, part.lowestKey) <= 0 { return FilePosition(block: 0) }
        if unsafe compareBytes(key, part.highestKey) > 0 { return FilePosition(block: part.dataBlockCount) }
        // The newest version of a key comes first.
        let version = part.versionMax &- part.versionMin
        let number = unsafe try part.findBlock(key, version: version)
        let block = try part.block(number)
        return FilePosition(block: number, index: unsafe block.search(key, version: version), count: block.count)
    }

    /// Blocks between the ends of a range whose entries are counted.
    private static let samplesMax = 8

    /// The first and the last block are counted exactly; those in between have as many entries as the samples.
    fileprivate func entries(from start: FilePosition, to end: FilePosition) throws(StorageError) -> Int {
        if start == FilePosition(block: 0), end == FilePosition(block: part.dataBlockCount) {
            return Int(footer.entryCount)
        }
        if start.block == end.block { return end.index - start.index }
        let first = start.count == 0 ? try part.block(start.block).count : start.count - start.index
        let between = end.block - start.block - 1
        let samples = min(between, Self.samplesMax)
        var counted = 0
        for sample in 0..<samples {
            counted += try part.block(start.block + 1 + (2 * sample + 1) * between / (2 * samples)).count
        }
        return first + end.index + (samples == 0 ? 0 : counted * between / samples)
    }

    fileprivate func bytes(from start: FilePosition, to end: FilePosition) -> Int {
        if kind == .documents {
            // Each leaf stands for as much of both files.
            let leaves = Double(end.block - start.block) + end.fraction - start.fraction
            return Int((leaves / Double(part.dataBlockCount) * Double(byteCount)).rounded())
        }
        let data = Double(dataOffset(end) - dataOffset(start))
        // The indexes belong to all entries alike.
        let share = Double(byteCount) / Double(max(endOfData, 1))
        return Int((data * share).rounded())
    }

    private var endOfData: Int {
        part.blockCount > part.dataBlockCount ? part.offset(ofBlock: part.dataBlockCount) : Int(footer.tableOffset)
    }

    private func offset(ofDataBlock number: Int) -> Int {
        number < part.dataBlockCount ? part.offset(ofBlock: number) : endOfData
    }

    private func dataOffset(_ position: FilePosition) -> Int {
        let start = offset(ofDataBlock: position.block)
        if position.count == 0 { return start }
        return start + Int(Double(offset(ofDataBlock: position.block + 1) - start) * position.fraction)
    }
}
