internal import CPrefetch
internal import Glibc
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
        do throws(StorageError) {
            footer = unsafe try Self.readFooter(base, byteCount, path)
            if let identity, identity != footer.identity {
                throw StorageError(.corrupt, "the file is not the one that the manifest names", file: path)
            }
            unsafe try Self.checkTable(base, footer, path)
        } catch {
            unsafe munmap(base, byteCount)
            throw error
        }
        part = unsafe RunPart(base: base, byteCount: byteCount, footer: footer, path: path)
        unsafe MapFaults.add(base, byteCount: byteCount, file: path)
    }

    deinit {
        unsafe MapFaults.remove(part.base)
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
            (1...keyMax).contains(footer.highestKeyBytes), footer.byteCount <= byteCount
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
    /// Bits of the data blocks, then of the blocks of the index, then of the pages of the hash index, that have been
    /// verified. The bit of a data block is its offset divided by `RunFormat.blockBytes`, which each but the last has.
    private let verified: UnsafeMutablePointer<Atomic<UInt64>>
    private let verifiedWords: Int
    private let dataBits: Int
    let lowestKey: UnsafeRawBufferPointer
    let highestKey: UnsafeRawBufferPointer
    /// For errors.
    private let pathBox: UnsafeMutablePointer<String>

    init(base: UnsafeRawPointer, byteCount: Int, footer: RunFooter, path: String) {
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
        verifiedWords = (dataBits + blockCount - dataBlockCount + hashPageCount + 63) / 64
        unsafe verified = .allocate(capacity: verifiedWords)
        for index in 0..<verifiedWords { unsafe (verified + index).initialize(to: Atomic(0)) }
        let keys = unsafe base + (byteCount - footer.byteCount)
        let low = Int(footer.lowestKeyBytes)
        unsafe lowestKey = UnsafeRawBufferPointer(start: keys, count: low)
        unsafe highestKey = UnsafeRawBufferPointer(start: keys + low, count: Int(footer.highestKeyBytes))
    }

    func release() {
        unsafe verified.deallocate()
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
        return unsafe Block(base + offset)
    }

    @inline(__always)
    private func dataBit(at offset: Int) -> Int { offset / RunFormat.blockBytes }

    /// Blocks that are read ahead at once.
    static let readAheadBlocks = 64

    /// Asks the kernel to read the blocks after the next ones.
    func readAhead(from number: Int) {
        let first = number == 0 ? 0 : min(number + Self.readAheadBlocks, blockCount - 1)
        let last = min(number + 2 * Self.readAheadBlocks, blockCount - 1)
        askFor(offset(ofBlock: first)..<offset(ofBlock: last))
    }

    /// Asks the kernel to read these bytes of the file, which makes reading them faster.
    private func askFor(_ bytes: Range<Int>) {
        let start = bytes.lowerBound & ~4095
        let count = bytes.upperBound - start
        if count > 0 { _ = unsafe madvise(UnsafeMutableRawPointer(mutating: base + start), count, MADV_WILLNEED) }
    }

    private func verifyBlock(at offset: Int, _ bit: Int) throws(StorageError) {
        let start = unsafe base + offset
        // Of a block that is not in memory all pages are read at once.
        askFor(offset..<min(offset + RunFormat.blockBytes, byteCount))
        let length = unsafe Int(start.loadUnaligned(fromByteOffset: BlockField.byteCount, as: UInt32.self))
        let end = unsafe hashIndex - base
        guard offset + BlockField.entries <= end, length >= BlockField.entries, length <= end - offset,
            unsafe RunFormat.sum(start + 8, length - 8, identity: identity, offset: offset)
                == start.loadUnaligned(as: UInt64.self)
        else {
            throw StorageError(.corrupt, "a block of a run is damaged", file: path, offset: offset)
        }
        noteVerified(bit)
    }

    private var path: String { unsafe pathBox.pointee }

    @inline(__always)
    private func isVerified(_ bit: Int) -> Bool {
        unsafe (verified + bit &>> 6).pointee.load(ordering: .relaxed) & 1 &<< UInt64(bit & 63) != 0
    }

    private func noteVerified(_ bit: Int) {
        unsafe (verified + bit / 64).pointee.bitwiseOr(1 &<< UInt64(bit & 63), ordering: .relaxed)
    }

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
                let entry = unsafe Block.entry(of: key, in: base + offset, at: place.offset, shared: place.shared)
                if let entry = unsafe entry { return unsafe entry }
            }
            line = line &+ 1 == hashLineCount ? 0 : line &+ 1
        }
        // All of them are full, so the key may have been left out.
        return unsafe try searchEntry(key, versionMax &- versionMin)
    }

    private func verify(hashPage number: Int, _ bit: Int) throws(StorageError) {
        let page = unsafe hashIndex + number * RunHashIndex.pageBytes
        let summed = RunHashIndex.linesPerPage * RunHashIndex.lineBytes
        let offset = unsafe page - base
        guard
            unsafe RunFormat.sum(page, summed, identity: identity, offset: offset)
                == UInt64(littleEndian: page.loadUnaligned(fromByteOffset: summed, as: UInt64.self))
        else {
            throw StorageError(.corrupt, "the hash index of a run is damaged", file: path, offset: offset)
        }
        noteVerified(bit)
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
            number = unsafe Int(UInt32(littleEndian: block.entry(index).value!.loadUnaligned(as: UInt32.self)))
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
