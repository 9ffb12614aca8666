internal import CPrefetch
internal import FileSystem
internal import Glibc
internal import Storage
internal import Synchronization

/// One file of a run, open and mapped. Any thread.
///
/// The file is unmapped when the last reference goes, and then also removed if it `isObsolete`.
@safe
final class RunFile: Sendable {
    let number: UInt64
    let path: String
    let footer: RunFooter
    let byteCount: Int
    let part: RunPart
    private let faultSlot: Int?
    private let isObsolete = Atomic<Bool>(false)

    /// Maps a file and verifies its footer and its table.
    /// - Parameters:
    ///   - identity: what the manifest says about the file; nil if nothing does.
    /// - Throws: `corrupt`, `inputOutput`.
    init(directory: String, number: UInt64, identity: UInt64? = nil) throws(StorageError) {
        self.number = number
        path = directory + "/" + RunFormat.fileName(number)
        if !Directory.exists(path) { throw StorageError(.corrupt, "a file of a run is missing", file: path) }
        // The map keeps the file; a descriptor for each would be many.
        let file = try File(path, flags: O_RDONLY)
        byteCount = try file.byteCount()
        guard byteCount >= RunFooter.fixedBytesMin else {
            throw StorageError(.corrupt, "a file of a run is too short", file: path)
        }
        let base = unsafe try file.map(byteCount: byteCount)
        // From here on a page that cannot be read is a page of zeros.
        let words = unsafe RunPart.makeWords(byteCount: byteCount)
        faultSlot = unsafe MapFaults.add(base, byteCount: byteCount, file: path, words: words)
        do throws(StorageError) {
            var read: RunFooter
            var keys: [UInt8]
            var faults: UInt64
            repeat {
                faults = MapFaults.count
                read = unsafe try Self.readFooter(base, byteCount, path)
                if let identity, identity != read.identity {
                    throw StorageError(.corrupt, "the file is not the one that the manifest names", file: path)
                }
                unsafe try Self.checkTable(base, read, path)
                let start = unsafe UnsafeRawBufferPointer(
                    start: base + (byteCount - read.byteCount), count: read.byteCount)
                unsafe keys = Array(start.prefix(Int(read.lowestKeyBytes + read.highestKeyBytes)))
            } while MapFaults.count != faults
            footer = read
            part = unsafe RunPart(
                base: base, byteCount: byteCount, footer: read, keys: keys, words: words, path: path)
        } catch {
            MapFaults.remove(faultSlot)
            unsafe munmap(base, byteCount)
            unsafe words.deallocate()
            throw error
        }
    }

    deinit {
        MapFaults.remove(faultSlot)
        unsafe munmap(UnsafeMutableRawPointer(mutating: part.base), byteCount)
        part.release()
        if isObsolete.load(ordering: .acquiring) { try? Directory.removeFile(path) }
    }

    /// The file will be removed when nothing uses it.
    func markObsolete() { isObsolete.store(true, ordering: .releasing) }

    private static func readFooter(
        _ base: UnsafeRawPointer, _ byteCount: Int, _ path: String
    ) throws(StorageError) -> RunFooter {
        let damage = StorageError(.corrupt, "the footer of a run is damaged", file: path, offset: byteCount)
        func word(_ offset: Int) -> UInt64 {
            unsafe UInt64(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        guard var footer = RunFooter(magic: word(byteCount - 16)), byteCount >= footer.fixedBytes else { throw damage }
        footer.fields = (0..<footer.fieldCount).map { word(byteCount - footer.fixedBytes + 8 * $0) }
        let keyMax = UInt64(EngineLimits.keyBytesMax)
        guard (1...keyMax).contains(footer.lowestKeyBytes),
            (1...keyMax).contains(footer.highestKeyBytes), footer.byteCount <= byteCount,
            footer.isPossible(byteCount: byteCount)
        else { throw damage }
        let start = byteCount - footer.byteCount
        let sum = unsafe RunFormat.sum(
            base + start, footer.byteCount - 8, identity: footer.identity, offset: start)
        guard word(byteCount - 8) == sum else { throw damage }
        return footer
    }

    private static func checkTable(
        _ base: UnsafeRawPointer, _ footer: RunFooter, _ path: String
    ) throws(StorageError) {
        let offset = Int(footer.tableOffset)
        let sum = unsafe RunFormat.sum(
            base + offset, Int(footer.blockCount) * 4, identity: footer.identity, offset: offset)
        guard sum == footer.tableSum else {
            throw StorageError(.corrupt, "the table of blocks of a run is damaged", file: path, offset: offset)
        }
    }
}

/// What reading a file of a run needs: plain numbers and addresses, so that copying one counts no references. Valid
/// while its ``RunFile`` is.
@safe
struct RunPart: @unchecked Sendable {  // The map is never written; what has been verified is noted atomically.
    let base: UnsafeRawPointer
    let byteCount: Int
    let dataBlockCount: Int
    let blockCount: Int
    private let table: UnsafeRawPointer
    private let hashIndex: UnsafeRawPointer
    private let hashPageCount: Int
    private let hashLineCount: Int
    /// First bytes of keys that the hash index does not have, if there are such: the lowest and the highest.
    private let lowestScanned: UInt8
    private let highestScanned: UInt8
    let versionMin: UInt64
    let versionMax: UInt64
    let identity: UInt64
    /// The count of faults at which the table was verified; then bits of the data blocks, of the blocks of the index,
    /// and of the pages of the hash index that have been verified. The bit of a data block is its offset divided by
    /// `RunFormat.blockBytes`, which each but the last has. A fault clears all.
    private let words: UnsafeMutableBufferPointer<Atomic<UInt64>>
    private let verified: UnsafeMutablePointer<Atomic<UInt64>>
    private let tableSum: UInt64
    private let dataBits: Int
    /// Copies: the pages of the footer are not read any more.
    let lowestKey: UnsafeRawBufferPointer
    let highestKey: UnsafeRawBufferPointer
    /// For errors.
    private let pathBox: UnsafeMutablePointer<String>

    /// Words for the marks of a file of this size: two blocks have at least a page, except the last of each level.
    static func makeWords(byteCount: Int) -> UnsafeMutableBufferPointer<Atomic<UInt64>> {
        let count = 1 + (byteCount / RunHashIndex.pageBytes + 2 * RunFormat.levelsMax + 64) / 64
        let words = UnsafeMutableBufferPointer<Atomic<UInt64>>.allocate(capacity: count)
        for index in 0..<count { unsafe words.initializeElement(at: index, to: Atomic(0)) }
        return unsafe words
    }

    /// - Parameters:
    ///   - keys: the lowest and the highest key.
    ///   - words: of `makeWords`; released with the part.
    init(
        base: UnsafeRawPointer, byteCount: Int, footer: RunFooter, keys contents: [UInt8],
        words: UnsafeMutableBufferPointer<Atomic<UInt64>>, path: String
    ) {
        unsafe pathBox = .allocate(capacity: 1)
        unsafe pathBox.initialize(to: path)
        unsafe self.base = unsafe base
        self.byteCount = byteCount
        dataBlockCount = Int(footer.dataBlockCount)
        blockCount = Int(footer.blockCount)
        unsafe table = base + Int(footer.tableOffset)
        unsafe hashIndex = base + Int(footer.hashOffset)
        hashPageCount = Int(footer.hashPageCount)
        hashLineCount = hashPageCount * RunHashIndex.linesPerPage
        lowestScanned = UInt8(truncatingIfNeeded: footer.scannedSpaces)
        highestScanned = UInt8(truncatingIfNeeded: footer.scannedSpaces >> 8)
        versionMin = footer.versionMin
        versionMax = footer.versionMax
        identity = footer.identity
        dataBits = Int(footer.tableOffset) / RunFormat.blockBytes + 1
        tableSum = footer.tableSum
        unsafe self.words = unsafe words
        unsafe verified = words.baseAddress! + 1
        let (low, high) = (Int(footer.lowestKeyBytes), Int(footer.highestKeyBytes))
        let keys = UnsafeMutableRawPointer.allocate(byteCount: low + high, alignment: 8)
        unsafe contents.withUnsafeBytes { unsafe keys.copyMemory(from: $0.baseAddress!, byteCount: low + high) }
        unsafe lowestKey = UnsafeRawBufferPointer(start: keys, count: low)
        unsafe highestKey = UnsafeRawBufferPointer(start: keys + low, count: high)
    }

    func release() {
        unsafe words.deallocate()
        unsafe lowestKey.deallocate()
        unsafe pathBox.deinitialize(count: 1)
        unsafe pathBox.deallocate()
    }

    // MARK: Blocks

    @inline(__always)
    func offset(ofBlock number: Int) -> Int {
        let unit = unsafe table.load(fromByteOffset: number &* 4, as: UInt32.self)
        return Int(UInt32(littleEndian: unit)) &* RunFormat.alignment
    }

    /// A block, which is verified if it is used for the first time.
    /// - Throws: `corrupt`.
    @inline(__always)
    func block(_ number: Int) throws(StorageError) -> Block {
        let offset = offset(ofBlock: number)
        let bit = number < dataBlockCount ? dataBit(at: offset) : dataBits &+ number &- dataBlockCount
        if !isVerified(bit) { try verifyBlock(at: offset, bit) }
        let block = unsafe Block(base + offset)
        // Only a page of zeros has none.
        if block.count == 0 { throw damaged(at: offset) }
        return block
    }

    private func damaged(at offset: Int) -> StorageError {
        StorageError(.corrupt, "a block of a run is damaged", file: path, offset: offset)
    }

    @inline(__always)
    private func dataBit(at offset: Int) -> Int { offset / RunFormat.blockBytes }

    /// Blocks that are read ahead at once.
    static let readAheadBlocks = 64

    /// Asks the kernel to read the blocks after the next ones.
    func readAhead(from number: Int) {
        let first = number == 0 ? 0 : min(number + Self.readAheadBlocks, blockCount - 1)
        let last = min(number + 2 * Self.readAheadBlocks, blockCount - 1)
        let start = offset(ofBlock: first)
        askFor(start..<max(start, offset(ofBlock: last)))
    }

    /// Asks the kernel to read these bytes of the file, which makes reading them faster.
    private func askFor(_ bytes: Range<Int>) {
        let start = bytes.lowerBound & ~4095
        let count = bytes.upperBound - start
        if count > 0 { _ = unsafe madvise(UnsafeMutableRawPointer(mutating: base + start), count, MADV_WILLNEED) }
    }

    private func verifyBlock(at offset: Int, _ bit: Int) throws(StorageError) {
        try verify(bit) { () throws(StorageError) in
            try verifyTable()
            try verifyBlock(at: offset)
        }
    }

    /// Verifies something and notes it, unless a page of zeros may have appeared meanwhile.
    private func verify(_ bit: Int, _ body: () throws(StorageError) -> Void) throws(StorageError) {
        while true {
            let faults = MapFaults.count
            try body()
            unsafe (verified + bit / 64).pointee.bitwiseOr(Self.mask(bit), ordering: .sequentiallyConsistent)
            if MapFaults.count == faults { return }
            unsafe (verified + bit / 64).pointee.bitwiseAnd(~Self.mask(bit), ordering: .sequentiallyConsistent)
        }
    }

    /// Verifies the table, which was verified at the opening, again if a page of it may have gone since.
    private func verifyTable() throws(StorageError) {
        let faults = MapFaults.count
        if unsafe faults == 0 || words[0].load(ordering: .relaxed) == faults { return }
        let offset = unsafe table - base
        guard unsafe RunFormat.sum(table, blockCount * 4, identity: identity, offset: offset) == tableSum else {
            throw StorageError(.corrupt, "the table of blocks of a run is damaged", file: path, offset: offset)
        }
        unsafe words[0].store(faults, ordering: .relaxed)
    }

    private func verifyBlock(at offset: Int) throws(StorageError) {
        let start = unsafe base + offset
        // Of a block that is not in memory all pages are read at once.
        askFor(offset..<min(offset + RunFormat.blockBytes, byteCount))
        let length = unsafe Int(start.loadUnaligned(fromByteOffset: BlockField.byteCount, as: UInt32.self))
        let end = unsafe hashIndex - base
        guard offset + BlockField.entries <= end, length >= BlockField.entries, length <= end - offset,
            unsafe RunFormat.sum(start + 8, length - 8, identity: identity, offset: offset)
                == start.loadUnaligned(as: UInt64.self)
        else {
            throw damaged(at: offset)
        }
    }

    private var path: String { unsafe pathBox.pointee }

    @inline(__always)
    private func isVerified(_ bit: Int) -> Bool {
        unsafe (verified + bit &>> 6).pointee.load(ordering: .relaxed) & Self.mask(bit) != 0
    }

    @inline(__always)
    private static func mask(_ bit: Int) -> UInt64 { 1 &<< UInt64(bit & 63) }

    // MARK: Searching

    /// Whether the hash index has the key if the file has it.
    @inline(__always)
    func isHashed(_ key: UnsafeRawBufferPointer) -> Bool {
        let space = unsafe key[0]
        return space < lowestScanned || space > highestScanned
    }

    /// Prefetches the line of the hash index for a hash.
    @inline(__always)
    func prefetchHashLine(_ hash: UInt64) {
        let line = RunHashIndex.line(hash, lineCount: hashLineCount)
        unsafe prefetch_for_reading(hashIndex + RunHashIndex.offset(ofLine: line))
    }

    /// The newest entry of a key that the hash index has, if the file has the key.
    /// - Throws: `corrupt`.
    func findNewest(_ key: UnsafeRawBufferPointer, hash: UInt64) throws(StorageError) -> Block.Entry? {
        var line = RunHashIndex.line(hash, lineCount: hashLineCount)
        for _ in 0..<min(RunHashIndex.linesMax, hashLineCount) {
            let page = line / RunHashIndex.linesPerPage
            let bit = dataBits &+ blockCount &- dataBlockCount &+ page
            if !isVerified(bit) { try verify(hashPage: page, bit) }
            let slots = unsafe hashIndex + RunHashIndex.offset(ofLine: line)
            for index in 0..<RunHashIndex.slotsPerLine {
                let slot = unsafe UInt64(littleEndian: slots.load(fromByteOffset: index &* 8, as: UInt64.self))
                if slot == 0 { return nil }
                guard RunHashIndex.hasTag(slot, of: hash) else { continue }
                let offset = RunHashIndex.block(slot)
                let bit = dataBit(at: offset)
                if !isVerified(bit) { try verifyBlock(at: offset, bit) }
                let place = RunHashIndex.entry(slot)
                let entry = unsafe Block.entry(
                    of: key, in: base + offset, at: place.offset, shared: place.shared, limit: table)
                if let entry = unsafe entry { return unsafe entry }
            }
            line = line &+ 1 == hashLineCount ? 0 : line &+ 1
        }
        // All of them are full, so the key may have been left out.
        return unsafe try searchEntry(key, versionMax &- versionMin)
    }

    private func verify(hashPage number: Int, _ bit: Int) throws(StorageError) {
        try verify(bit) { () throws(StorageError) in try verify(hashPage: number) }
    }

    private func verify(hashPage number: Int) throws(StorageError) {
        let page = unsafe hashIndex + number * RunHashIndex.pageBytes
        let summed = RunHashIndex.linesPerPage * RunHashIndex.lineBytes
        let offset = unsafe page - base
        guard
            unsafe RunFormat.sum(page, summed, identity: identity, offset: offset)
                == UInt64(littleEndian: page.loadUnaligned(fromByteOffset: summed, as: UInt64.self))
        else {
            throw StorageError(.corrupt, "the hash index of a run is damaged", file: path, offset: offset)
        }
    }

    /// Verifies all pages of the hash index.
    func verifyHashIndex() throws(StorageError) {
        for page in 0..<hashPageCount { try verify(hashPage: page, dataBits + blockCount - dataBlockCount + page) }
    }

    /// The data block in which (key, version), or what comes after it, is found: there or at the start of the next one.
    /// - Parameter version: less `versionMin`.
    func findBlock(_ key: UnsafeRawBufferPointer, version: UInt64) throws(StorageError) -> Int {
        var number = blockCount - 1
        while number >= dataBlockCount {
            let block = try block(number)
            var index = unsafe block.search(key, version: version)
            let isExact =
                unsafe index < block.count && block.entry(index).version == version && block.hasKey(key, at: index)
            if !isExact && index > 0 { index -= 1 }
            let value = unsafe block.entry(index).value
            guard let value = unsafe value, value.count == 4 else { throw damaged(at: offset(ofBlock: number)) }
            let child = unsafe Int(UInt32(littleEndian: value.loadUnaligned(as: UInt32.self)))
            // Blocks of the index follow those to which they lead.
            guard child < number else { throw damaged(at: offset(ofBlock: number)) }
            number = child
        }
        return number
    }

    /// A version as the file counts it; nil if all entries are newer.
    @inline(__always)
    func relative(_ version: UInt64) -> UInt64? {
        if version < versionMin { return nil }
        return min(version, versionMax) &- versionMin
    }

    /// The newest entry of a key that is at most `version`.
    /// - Parameter hash: `RunHashIndex.hash` of the key with the seed of the file.
    /// - Throws: `corrupt`.
    @inline(__always)
    func find(
        _ key: UnsafeRawBufferPointer, hash: UInt64, atMost version: UInt64
    ) throws(StorageError) -> FoundEntry? {
        guard let relative = relative(version) else { return nil }
        if unsafe isHashed(key) {
            guard let newest = unsafe try findNewest(key, hash: hash) else { return nil }
            if unsafe newest.version <= relative { return unsafe found(newest) }
        }
        return unsafe try search(key, relative)
    }

    /// The newest entry of a key that is at most `version`, by the index of blocks.
    /// - Parameter version: less `versionMin`.
    func search(_ key: UnsafeRawBufferPointer, _ version: UInt64) throws(StorageError) -> FoundEntry? {
        guard let entry = unsafe try searchEntry(key, version) else { return nil }
        return unsafe found(entry)
    }

    private func searchEntry(_ key: UnsafeRawBufferPointer, _ version: UInt64) throws(StorageError) -> Block.Entry? {
        var number = unsafe try findBlock(key, version: version)
        var block = try block(number)
        var index = unsafe block.search(key, version: version)
        if index == block.count {
            number += 1
            guard number < dataBlockCount else { return nil }
            block = try self.block(number)
            index = 0
        }
        return unsafe block.hasKey(key, at: index) ? unsafe block.entry(index) : nil
    }

    @inline(__always)
    private func found(_ entry: Block.Entry) -> FoundEntry {
        unsafe FoundEntry(bytes: entry.value, version: entry.version &+ versionMin)
    }
}
