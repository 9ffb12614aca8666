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
        guard byteCount >= RunFooter.fixedBytes else {
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
        let fixed = byteCount - RunFooter.fixedBytes
        func word(_ index: Int) -> UInt64 {
            unsafe UInt64(littleEndian: base.loadUnaligned(fromByteOffset: fixed + 8 * index, as: UInt64.self))
        }
        var footer = RunFooter()
        footer.fields = (0..<RunFooter.fieldCount).map(word)
        let keyMax = UInt64(EngineLimits.keyBytesMax)
        guard word(RunFooter.fieldCount) == RunFooter.magic, (1...keyMax).contains(footer.lowestKeyBytes),
            (1...keyMax).contains(footer.highestKeyBytes), footer.byteCount <= byteCount
        else { throw damage }
        let start = byteCount - footer.byteCount
        let sum = unsafe RunFormat.sum(
            base + start, footer.byteCount - 8, identity: footer.identity, offset: start)
        guard word(RunFooter.fieldCount + 1) == sum else { throw damage }
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
    private let filter: UnsafeRawPointer
    private let filterPageCount: Int
    let versionMin: UInt64
    let versionMax: UInt64
    let identity: UInt64
    /// Bits of the blocks, then of the filter's pages, that have been verified.
    private let verified: UnsafeMutablePointer<Atomic<UInt64>>
    private let verifiedWords: Int
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
        unsafe filter = base + Int(footer.filterOffset)
        filterPageCount = Int(footer.filterPageCount)
        versionMin = footer.versionMin
        versionMax = footer.versionMax
        identity = footer.identity
        verifiedWords = (blockCount + filterPageCount + 63) / 64
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
        if !isVerified(number) { try verify(block: number, at: offset) }
        return unsafe Block(base + offset)
    }

    /// Blocks that are read ahead at once.
    static let readAheadBlocks = 64

    /// Asks the kernel to read the blocks after the next ones.
    func readAhead(from number: Int) {
        let first = number == 0 ? 0 : min(number + Self.readAheadBlocks, blockCount - 1)
        let last = min(number + 2 * Self.readAheadBlocks, blockCount - 1)
        let start = offset(ofBlock: first) & ~4095
        let bytes = offset(ofBlock: last) - start
        // Only faster.
        if bytes > 0 { _ = unsafe madvise(UnsafeMutableRawPointer(mutating: base + start), bytes, MADV_WILLNEED) }
    }

    private func verify(block number: Int, at offset: Int) throws(StorageError) {
        let start = unsafe base + offset
        let length = unsafe Int(start.loadUnaligned(fromByteOffset: BlockField.byteCount, as: UInt32.self))
        let end = unsafe filter - base
        guard offset + BlockField.entries <= end, length >= BlockField.entries, length <= end - offset,
            unsafe RunFormat.sum(start + 8, length - 8, identity: identity, offset: offset)
                == start.loadUnaligned(as: UInt64.self)
        else {
            throw StorageError(
                .corrupt, "block \(number) of a run is damaged", file: path, offset: offset)
        }
        noteVerified(number)
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

    /// Prefetches the line of the filter for a hash.
    @inline(__always)
    func prefetchFilter(_ hash: UInt64) {
        let place = RunFilter.place(hash, pageCount: filterPageCount)
        unsafe prefetch_for_reading(filter + (place.page &* RunFilter.pageBytes &+ place.byte))
    }

    /// False if no version of the key with this hash is in the file.
    /// - Throws: `corrupt`.
    @inline(__always)
    func mayContain(hash: UInt64) throws(StorageError) -> Bool {
        let place = RunFilter.place(hash, pageCount: filterPageCount)
        let page = unsafe filter + (place.page &* RunFilter.pageBytes)
        if !isVerified(blockCount &+ place.page) { try verify(filterPage: place.page) }
        return unsafe RunFilter.mayContain(hash, page + place.byte)
    }

    private func verify(filterPage number: Int) throws(StorageError) {
        let page = unsafe filter + number * RunFilter.pageBytes
        let summed = RunFilter.linesPerPage * RunFilter.lineBytes
        let offset = unsafe page - base
        guard
            unsafe RunFormat.sum(page, summed, identity: identity, offset: offset)
                == page.loadUnaligned(fromByteOffset: summed, as: UInt64.self)
        else {
            throw StorageError(.corrupt, "page \(number) of a run's filter is damaged", file: path, offset: offset)
        }
        noteVerified(blockCount + number)
    }

    /// Verifies all pages of the filter.
    func verifyFilter() throws(StorageError) {
        for page in 0..<filterPageCount { try verify(filterPage: page) }
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

    /// The newest entry of a key that is at most `version`, as its block and its number in it.
    func find(_ key: UnsafeRawBufferPointer, atMost version: UInt64) throws(StorageError) -> (Block, Int)? {
        guard let relative = relative(version) else { return nil }
        var number = unsafe try findBlock(key, version: relative)
        var block = try block(number)
        var index = unsafe block.search(key, version: relative)
        if index == block.count {
            number += 1
            guard number < dataBlockCount else { return nil }
            block = try self.block(number)
            index = 0
        }
        guard unsafe block.hasKey(key, at: index) else { return nil }
        return (block, index)
    }
}
