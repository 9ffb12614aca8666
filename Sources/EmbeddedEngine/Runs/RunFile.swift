internal import CPrefetch
internal import FileSystem
internal import Glibc
internal import Storage
internal import Synchronization

/// One file of a run, open and mapped; of documents the LMDB file and the one beside it. Any thread.
///
/// The file is unmapped when the last reference goes, and then also removed if it `isObsolete`.
@safe
final class RunFile: Sendable {
    let number: UInt64
    let kind: RunKind
    /// Of documents that of the LMDB file.
    let path: String
    let footer: RunFooter
    /// Of documents that of both files.
    let byteCount: Int
    let part: RunPart
    private let maps: [FileMap]
    private let isObsolete = Atomic<Bool>(false)

    /// Maps a file and verifies its footer and its table.
    /// - Parameters:
    ///   - identity: what the manifest says about the file; nil if nothing does.
    /// - Throws: `corrupt`, `inputOutput`.
    convenience init(
        directory: String, number: UInt64, kind: RunKind = .entries, identity: UInt64? = nil
    ) throws(StorageError) {
        let paths = RunFormat.fileNames(number, kind).map { directory + "/" + $0 }
        unsafe try self.init(number, kind, identity, paths, FileMap.open(paths))
    }

    /// A copy in memory of an open file, read from the disk, with nothing verified yet but the footer and the table.
    ///
    /// - Parameter progress: called after each piece; what it throws ends the reading.
    convenience init(
        reading file: RunFile, _ progress: (_ byteCount: Int) throws(StorageError) -> Void
    ) throws(StorageError) {
        let paths = file.maps.map(\.path)
        unsafe try self.init(file.number, file.kind, file.footer.identity, paths, FileMap.read(paths, progress))
    }

    /// - Parameter files: of `paths`; taken over.
    private init(
        _ number: UInt64, _ kind: RunKind, _ identity: UInt64?, _ paths: [String],
        _ files: (maps: [FileMap], words: UnsafeMutableBufferPointer<Atomic<UInt64>>)
    ) throws(StorageError) {
        self.number = number
        self.kind = kind
        path = paths[0]
        unsafe maps = files.maps
        byteCount = maps.reduce(0) { $0 + $1.byteCount }
        let index = maps[maps.count - 1]
        do throws(StorageError) {
            var read: RunFooter
            var keys: [UInt8]
            var faults: UInt64
            repeat {
                faults = MapFaults.settledCount
                read = unsafe try Self.readFooter(index.base, index.byteCount, index.path)
                if let identity, identity != read.identity {
                    throw StorageError(.corrupt, "the file is not the one that the manifest names", file: index.path)
                }
                unsafe try Self.checkTable(index.base, read, index.path)
                let start = unsafe UnsafeRawBufferPointer(
                    start: index.base + (index.byteCount - read.byteCount), count: read.byteCount)
                unsafe keys = Array(start.prefix(Int(read.lowestKeyBytes + read.highestKeyBytes)))
            } while MapFaults.count != faults
            try Self.checkSize(of: maps[0], read, kind)
            footer = read
            part = unsafe RunPart(number: number, maps: maps, footer: read, keys: keys, words: files.words)
        } catch {
            for map in maps { map.close() }
            unsafe files.words.deallocate()
            throw error
        }
    }

    deinit {
        for map in maps { map.close() }
        part.release()
        if isObsolete.load(ordering: .acquiring) { for map in maps { map.removeFile() } }
    }

    /// - Throws: `corrupt` if the file is of the other kind, or an LMDB file has another size than its side file says.
    private static func checkSize(of data: FileMap, _ footer: RunFooter, _ kind: RunKind) throws(StorageError) {
        let isRight =
            switch (kind, footer.documents) {
            case (.entries, nil): true
            case (.documents, let documents?): data.byteCount == Int(documents.pageBytes * documents.pageCount)
            default: false
            }
        if !isRight { throw StorageError(.corrupt, "a file of a run has another size", file: data.path) }
    }

    /// The bytes of each of its files.
    var byteCounts: [Int] { maps.map(\.byteCount) }

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
    /// That of the file.
    let number: UInt64
    let base: UnsafeRawPointer
    let byteCount: Int
    /// The map with table and hash index: the same, or that of the file beside an LMDB file.
    let indexBase: UnsafeRawPointer
    /// Bytes of that map.
    let indexByteCount: Int
    /// The pages of an LMDB file; nil for a file of entries.
    let documents: DocumentPages?
    let dataBlockCount: Int
    let blockCount: Int
    let table: UnsafeRawPointer
    let hashIndex: UnsafeRawPointer
    let hashPageCount: Int
    private let hashLineCount: Int
    /// First bytes of keys that the hash index does not have, if there are such: the lowest and the highest.
    private let lowestScanned: UInt8
    private let highestScanned: UInt8
    let versionMin: UInt64
    let versionMax: UInt64
    let identity: UInt64
    /// The count of faults at which the table was verified; then bits of the data blocks, of the blocks of the index,
    /// of the pages of the hash index, and of the pages of records that have been verified. The bit of a data block is
    /// its offset divided by `RunFormat.blockBytes`, which each but the last has; that of a page of an LMDB file is its
    /// number. Then the same bits again, of what is warm: verified, and in memory when it was last looked at. A fault
    /// clears all.
    private let words: UnsafeMutableBufferPointer<Atomic<UInt64>>
    private let verified: UnsafeMutablePointer<Atomic<UInt64>>
    let warm: UnsafeMutablePointer<Atomic<UInt64>>
    private let tableSum: UInt64
    let dataBits: Int
    private let dataBitShift: Int
    /// Copies: the pages of the footer are not read any more.
    let lowestKey: UnsafeRawBufferPointer
    let highestKey: UnsafeRawBufferPointer
    /// For errors: of the file with the data, and of that with the index.
    private let paths: UnsafeMutablePointer<String>

    /// Words for the marks of files of this size together: two blocks have at least a page, except the last of each
    /// level.
    static func makeWords(byteCount: Int) -> UnsafeMutableBufferPointer<Atomic<UInt64>> {
        let count = 1 + 2 * ((byteCount / RunHashIndex.pageBytes + 2 * RunFormat.levelsMax + 64) / 64)
        let words = UnsafeMutableBufferPointer<Atomic<UInt64>>.allocate(capacity: count)
        for index in 0..<count { unsafe words.initializeElement(at: index, to: Atomic(0)) }
        return unsafe words
    }

    /// - Parameters:
    ///   - keys: the lowest and the highest key.
    ///   - words: of `makeWords`; released with the part.
    init(
        number: UInt64, maps: [FileMap], footer: RunFooter, keys contents: [UInt8],
        words: UnsafeMutableBufferPointer<Atomic<UInt64>>
    ) {
        let (data, index) = (maps[0], maps[maps.count - 1])
        self.number = number
        unsafe paths = .allocate(capacity: 2)
        unsafe paths.initialize(to: data.path)
        unsafe (paths + 1).initialize(to: index.path)
        unsafe base = data.base
        byteCount = data.byteCount
        unsafe indexBase = index.base
        indexByteCount = index.byteCount
        documents = footer.documents.map { unsafe DocumentPages($0, data.base, records: index.base) }
        dataBlockCount = Int(footer.dataBlockCount)
        blockCount = Int(footer.blockCount)
        unsafe table = index.base + Int(footer.tableOffset)
        unsafe hashIndex = index.base + Int(footer.hashOffset)
        hashPageCount = Int(footer.hashPageCount)
        hashLineCount = hashPageCount * RunHashIndex.linesPerPage
        lowestScanned = UInt8(truncatingIfNeeded: footer.scannedSpaces)
        highestScanned = UInt8(truncatingIfNeeded: footer.scannedSpaces >> 8)
        // Versions of documents are stored as they are.
        versionMin = footer.documents == nil ? footer.versionMin : 0
        versionMax = footer.versionMax
        identity = footer.identity
        dataBitShift = documents?.map.pageShift ?? RunFormat.blockBytes.trailingZeroBitCount
        dataBits = documents?.map.pageCount ?? (Int(footer.tableOffset) / RunFormat.blockBytes + 1)
        tableSum = footer.tableSum
        unsafe self.words = unsafe words
        unsafe verified = words.baseAddress! + 1
        unsafe warm = words.baseAddress! + 1 + words.count / 2
        let (low, high) = (Int(footer.lowestKeyBytes), Int(footer.highestKeyBytes))
        let keys = UnsafeMutableRawPointer.allocate(byteCount: low + high, alignment: 8)
        unsafe contents.withUnsafeBytes { unsafe keys.copyMemory(from: $0.baseAddress!, byteCount: low + high) }
        unsafe lowestKey = UnsafeRawBufferPointer(start: keys, count: low)
        unsafe highestKey = UnsafeRawBufferPointer(start: keys + low, count: high)
    }

    func release() {
        unsafe words.deallocate()
        unsafe lowestKey.deallocate()
        unsafe paths.deinitialize(count: 2)
        unsafe paths.deallocate()
    }

    // MARK: Blocks

    @inline(__always)
    func offset(ofBlock number: Int) -> Int {
        let unit = unsafe table.load(fromByteOffset: number &* 4, as: UInt32.self)
        return Int(UInt32(littleEndian: unit)) &* RunFormat.alignment
    }

    /// A block, which is verified if it is used for the first time.
    /// - Throws: `corrupt`, `pending`.
    @inline(__always)
    func block(_ number: Int, _ cold: ColdReads = .wait) throws(StorageError) -> RunBlock {
        guard let documents else { return .entries(try entryBlock(number, cold)) }
        let offset = offset(ofBlock: number)
        let bit = dataBit(at: offset)
        if !isWarm(bit) { try warmBlock(at: offset, bit, cold) }
        let leaf = DocumentLeaf(documents.map, at: offset)
        if leaf.count == 0 { throw damaged(at: offset) }
        return .documents(leaf)
    }

    /// A block of a file of entries, of data or of the index.
    @inline(__always)
    private func entryBlock(_ number: Int, _ cold: ColdReads) throws(StorageError) -> Block {
        let offset = offset(ofBlock: number)
        let bit = number < dataBlockCount ? dataBit(at: offset) : dataBits &+ number &- dataBlockCount
        if !isWarm(bit) { try warmBlock(at: offset, bit, cold) }
        let block = unsafe Block(base + offset)
        // Only a page of zeros has none.
        if block.count == 0 { throw damaged(at: offset) }
        return block
    }

    private func damaged(at offset: Int) -> StorageError {
        let what = documents == nil ? "a block of a run" : "a page of documents"
        return StorageError(.corrupt, what + " is damaged", file: path, offset: offset)
    }

    /// Where the blocks of the index begin in a file of entries.
    var indexBlocksStart: Int { dataBlockCount < blockCount ? offset(ofBlock: dataBlockCount) : byteCount }

    @inline(__always)
    private func dataBit(at offset: Int) -> Int { offset &>> dataBitShift }

    /// Blocks that are read ahead at once.
    static let readAheadBlocks = 64

    /// Asks the kernel to read the blocks after the next ones.
    func readAhead(from number: Int) {
        let first = number == 0 ? 0 : min(number + Self.readAheadBlocks, blockCount - 1)
        let last = min(number + 2 * Self.readAheadBlocks, blockCount - 1)
        let start = offset(ofBlock: first)
        adviseWillNeed(start..<max(start, offset(ofBlock: last)))
    }

    /// Notes that the blocks around one are likely to be read next.
    func noteAround(_ number: Int, _ cold: ColdReads) {
        let first = offset(ofBlock: max(0, number - Self.readAheadBlocks / 4))
        let last = offset(ofBlock: min(number + Self.readAheadBlocks / 4, dataBlockCount - 1))
        if first < last { cold.note(.ahead(first..<last), in: self.number) }
    }

    /// Advises the kernel to read these bytes of the file ahead.
    func adviseWillNeed(_ bytes: Range<Int>) {
        let start = bytes.lowerBound & ~4095
        let count = bytes.upperBound - start
        if count > 0 { _ = unsafe madvise(UnsafeMutableRawPointer(mutating: base + start), count, MADV_WILLNEED) }
    }

    func warmBlock(at offset: Int, _ bit: Int, _ cold: ColdReads) throws(StorageError) {
        if cold.pends { try checkResident(.block(offset: offset, bit: bit), cold) }
        try warmUp(bit) { () throws(StorageError) in
            try verifyTable()
            try verifyBlock(at: offset)
        }
    }

    /// Verifies something unless that was done, and notes that it is warm, unless a page of zeros may have appeared
    /// meanwhile.
    private func warmUp(_ bit: Int, _ verify: () throws(StorageError) -> Void) throws(StorageError) {
        let (word, mask) = (bit / 64, Self.mask(bit))
        while true {
            let faults = MapFaults.settledCount
            if unsafe (verified + word).pointee.load(ordering: .relaxed) & mask == 0 {
                try verify()
                unsafe (verified + word).pointee.bitwiseOr(mask, ordering: .sequentiallyConsistent)
            }
            unsafe (warm + word).pointee.bitwiseOr(mask, ordering: .sequentiallyConsistent)
            if MapFaults.count == faults { return }
            unsafe (warm + word).pointee.bitwiseAnd(~mask, ordering: .sequentiallyConsistent)
            unsafe (verified + word).pointee.bitwiseAnd(~mask, ordering: .sequentiallyConsistent)
        }
    }

    /// Verifies the table, which was verified at the opening, again if a page of it may have gone since.
    private func verifyTable() throws(StorageError) {
        let faults = MapFaults.count
        if unsafe faults == 0 || words[0].load(ordering: .relaxed) == faults { return }
        let offset = unsafe table - indexBase
        guard unsafe RunFormat.sum(table, blockCount * 4, identity: identity, offset: offset) == tableSum else {
            throw StorageError(.corrupt, "the table of blocks of a run is damaged", file: indexPath, offset: offset)
        }
        unsafe words[0].store(faults, ordering: .relaxed)
    }

    private func verifyBlock(at offset: Int) throws(StorageError) {
        if let documents { return try verifyPage(at: offset, documents) }
        let start = unsafe base + offset
        // Of a block that is not in memory all pages are read at once.
        adviseWillNeed(offset..<min(offset + RunFormat.blockBytes, byteCount))
        let length = unsafe Int(start.loadUnaligned(fromByteOffset: BlockField.byteCount, as: UInt32.self))
        let end = unsafe hashIndex - base
        guard offset + BlockField.entries <= end, length >= BlockField.entries, length <= end - offset,
            unsafe RunFormat.sum(start + 8, length - 8, identity: identity, offset: offset)
                == start.loadUnaligned(as: UInt64.self)
        else {
            throw damaged(at: offset)
        }
    }

    /// The file that has a place.
    func path(of place: ColdPlace) -> String {
        switch place {
        case .block, .pages, .ahead: path
        case .hashPage, .records: indexPath
        }
    }

    private var path: String { unsafe paths[0] }
    private var indexPath: String { unsafe paths[1] }

    /// Whether it has been verified and can be read without waiting, as far as known.
    @inline(__always)
    func isWarm(_ bit: Int) -> Bool {
        unsafe (warm + bit &>> 6).pointee.load(ordering: .relaxed) & Self.mask(bit) != 0
    }

    @inline(__always)
    static func mask(_ bit: Int) -> UInt64 { 1 &<< UInt64(bit & 63) }

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
    func findNewest(
        _ key: UnsafeRawBufferPointer, hash: UInt64, _ cold: ColdReads = .wait
    ) throws(StorageError) -> Block.Entry? {
        var line = RunHashIndex.line(hash, lineCount: hashLineCount)
        for _ in 0..<min(RunHashIndex.linesMax, hashLineCount) {
            let page = line / RunHashIndex.linesPerPage
            let bit = hashBit(ofPage: page)
            if !isWarm(bit) { try warm(hashPage: page, bit, cold) }
            let slots = unsafe hashIndex + RunHashIndex.offset(ofLine: line)
            for index in 0..<RunHashIndex.slotsPerLine {
                let slot = unsafe UInt64(littleEndian: slots.load(fromByteOffset: index &* 8, as: UInt64.self))
                if slot == 0 { return nil }
                guard RunHashIndex.hasTag(slot, of: hash) else { continue }
                let offset = RunHashIndex.block(slot)
                let bit = dataBit(at: offset)
                if !isWarm(bit) { try warmBlock(at: offset, bit, cold) }
                if let entry = unsafe try entry(of: key, at: offset, slot, cold) { return unsafe entry }
            }
            line = line &+ 1 == hashLineCount ? 0 : line &+ 1
        }
        // All of them are full, so the key may have been left out.
        return unsafe try searchEntry(key, versionMax &- versionMin, cold)
    }

    /// The entry to which a slot of the hash index leads if it has this key. Its block has been verified.
    @inline(__always)
    private func entry(
        of key: UnsafeRawBufferPointer, at offset: Int, _ slot: UInt64, _ cold: ColdReads
    ) throws(StorageError) -> Block.Entry? {
        guard let documents else {
            let place = RunHashIndex.entry(slot)
            return unsafe Block.entry(
                of: key, in: base + offset, at: place.offset, shared: place.shared, limit: table)
        }
        let entry = unsafe DocumentLeaf.entry(of: key, in: documents.map, offset, at: RunHashIndex.node(slot))
        unsafe try warmApart(entry?.value, cold)
        return unsafe entry
    }

    @inline(__always)
    func hashBit(ofPage page: Int) -> Int { dataBits &+ blockCount &- dataBlockCount &+ page }

    func warm(hashPage number: Int, _ bit: Int, _ cold: ColdReads) throws(StorageError) {
        if cold.pends { try checkResident(.hashPage(number), cold) }
        try warmUp(bit) { () throws(StorageError) in try verify(hashPage: number) }
    }

    private func verify(hashPage number: Int) throws(StorageError) {
        let page = unsafe hashIndex + number * RunHashIndex.pageBytes
        let summed = RunHashIndex.linesPerPage * RunHashIndex.lineBytes
        let offset = unsafe page - indexBase
        guard
            unsafe RunFormat.sum(page, summed, identity: identity, offset: offset)
                == UInt64(littleEndian: page.loadUnaligned(fromByteOffset: summed, as: UInt64.self))
        else {
            throw StorageError(.corrupt, "the hash index of a run is damaged", file: indexPath, offset: offset)
        }
    }

    /// Verifies all pages of the hash index.
    func verifyHashIndex() throws(StorageError) {
        for page in 0..<hashPageCount { try warm(hashPage: page, hashBit(ofPage: page), .wait) }
    }

    /// Verifies all blocks and all pages of the hash index.
    /// - Throws: `corrupt`.
    func verifyBlocks() throws(StorageError) {
        try verifyHashIndex()
        for number in 0..<blockCount { _ = try block(number) }
    }

    /// The data block in which (key, version), or what comes after it, is found: there or at the start of the next one.
    /// - Parameter version: less `versionMin`.
    func findBlock(
        _ key: UnsafeRawBufferPointer, version: UInt64, _ cold: ColdReads = .wait
    ) throws(StorageError) -> Int {
        if let documents { return unsafe try findLeaf(key, version: version, documents, cold) }
        var number = blockCount - 1
        while number >= dataBlockCount {
            let block = try entryBlock(number, cold)
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
        _ key: UnsafeRawBufferPointer, hash: UInt64, atMost version: UInt64, _ cold: ColdReads = .wait
    ) throws(StorageError) -> FoundEntry? {
        guard let relative = relative(version) else { return nil }
        if unsafe isHashed(key) {
            guard let newest = unsafe try findNewest(key, hash: hash, cold) else { return nil }
            if unsafe newest.version <= relative { return unsafe found(newest) }
        }
        return unsafe try search(key, relative, cold)
    }

    /// The newest entry of a key that is at most `version`, by the index of blocks.
    /// - Parameter version: less `versionMin`.
    func search(
        _ key: UnsafeRawBufferPointer, _ version: UInt64, _ cold: ColdReads = .wait
    ) throws(StorageError) -> FoundEntry? {
        guard let entry = unsafe try searchEntry(key, version, cold) else { return nil }
        return unsafe found(entry)
    }

    private func searchEntry(
        _ key: UnsafeRawBufferPointer, _ version: UInt64, _ cold: ColdReads
    ) throws(StorageError) -> Block.Entry? {
        var number = unsafe try findBlock(key, version: version, cold)
        var block = try block(number, cold)
        var index = unsafe block.search(key, version: version)
        if index == block.count {
            number += 1
            guard number < dataBlockCount else { return nil }
            block = try self.block(number, cold)
            index = 0
        }
        guard unsafe block.hasKey(key, at: index) else { return nil }
        let entry = unsafe block.entry(index)
        unsafe try warmApart(entry.value, cold)
        return unsafe entry
    }

    @inline(__always)
    private func found(_ entry: Block.Entry) -> FoundEntry {
        unsafe FoundEntry(bytes: entry.value, version: entry.version &+ versionMin)
    }
}

// MARK: - Documents

extension RunPart {
    /// The number of the leaf in which (key, version), or what comes after it, is found: there or at the start of the
    /// next one.
    private func findLeaf(
        _ key: UnsafeRawBufferPointer, version: UInt64, _ documents: DocumentPages, _ cold: ColdReads
    ) throws(StorageError) -> Int {
        let map = documents.map
        var number = documents.root
        for _ in 1..<documents.depth {
            let offset = number &<< map.pageShift
            if !isWarm(number) { try warmBlock(at: offset, number, cold) }
            let branch = map.page(at: offset)
            guard branch.count > 0, branch.flags == LMDBFormat.branch else { throw damaged(at: offset) }
            number = unsafe map.child(of: branch, key, version)
            guard number < map.pageCount else { throw damaged(at: offset) }
        }
        let leaf = documents.leaf(number)
        guard leaf < dataBlockCount else { throw damaged(at: number &<< map.pageShift) }
        return leaf
    }

    /// Verifies the pages of a value of a document that does not lie on the page of its key.
    @inline(__always)
    func warmApart(_ value: UnsafeRawBufferPointer?, _ cold: ColdReads = .wait) throws(StorageError) {
        guard let documents, let value = unsafe value, value.count >= DocumentFormat.apartBytesMin else { return }
        let start = unsafe value.baseAddress! - base
        var number = start &>> documents.map.pageShift
        let last = (start &+ value.count &- 1) &>> documents.map.pageShift
        while number <= last {
            if !isWarm(number) { try warmPages(number...last, documents, cold) }
            number &+= 1
        }
    }

    /// Verifies the first of these pages. If one must be waited for, all are.
    private func warmPages(
        _ numbers: ClosedRange<Int>, _ documents: DocumentPages, _ cold: ColdReads
    ) throws(StorageError) {
        let first = numbers.lowerBound
        if cold.pends { try checkResident(.pages(first...first), cold, noting: .pages(numbers)) }
        try warmBlock(at: first &<< documents.map.pageShift, first, .wait)
    }

    private func verifyPage(at offset: Int, _ documents: DocumentPages) throws(StorageError) {
        let map = documents.map
        let number = offset &>> map.pageShift
        guard number < map.pageCount else { throw damaged(at: offset) }
        try warmRecords(number / DocumentFormat.recordsPerPage, documents, .wait)
        let pageBytes = 1 &<< map.pageShift
        adviseWillNeed(offset..<(offset + pageBytes))
        guard
            unsafe RunFormat.sum(base + offset, pageBytes, identity: identity, offset: offset)
                == documents.sum(number)
        else { throw damaged(at: offset) }
    }

    /// In a file of documents no block is of an index.
    func recordsBit(_ page: Int) -> Int { dataBits &+ hashPageCount &+ page }

    func warmRecords(_ page: Int, _ documents: DocumentPages, _ cold: ColdReads) throws(StorageError) {
        let bit = recordsBit(page)
        if isWarm(bit) { return }
        if cold.pends { try checkResident(.records(page), cold) }
        try warmUp(bit) { () throws(StorageError) in
            let bytes = unsafe documents.recordsPage(page)
            let offset = unsafe bytes.baseAddress! - indexBase
            guard
                unsafe RunFormat.sum(bytes.baseAddress! + 8, bytes.count - 8, identity: identity, offset: offset)
                    == UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
            else {
                throw StorageError(.corrupt, "the sums of pages are damaged", file: indexPath, offset: offset)
            }
        }
    }

    /// Verifies all pages of an LMDB file.
    func verifyPages() throws(StorageError) {
        guard let documents else { return }
        for number in 0..<documents.map.pageCount {
            try warmBlock(at: number &<< documents.map.pageShift, number, .wait)
        }
    }
}

/// The pages of an LMDB file and their records. Valid while its ``RunFile`` is.
@safe
struct DocumentPages {
    let map: DocumentMap
    let root: Int
    /// Levels from the root to the leaves.
    let depth: Int
    private let records: UnsafeRawPointer

    /// - Parameters:
    ///   - base: the map of the LMDB file.
    ///   - side: the map of the file beside it.
    init(_ footer: DocumentFooter, _ base: UnsafeRawPointer, records side: UnsafeRawPointer) {
        map = unsafe DocumentMap(
            base: base, byteCount: Int(footer.pageBytes * footer.pageCount),
            pageShift: footer.pageBytes.trailingZeroBitCount, latestOnlySpaces: footer.latestOnlySpaces)
        root = Int(footer.root)
        depth = Int(footer.depth)
        unsafe records = side + Int(footer.recordsOffset)
    }

    var recordsStart: UnsafeRawPointer { unsafe records }

    var recordsPageCount: Int { (map.pageCount + DocumentFormat.recordsPerPage - 1) / DocumentFormat.recordsPerPage }

    /// A page of records, the last one without the part that it does not have.
    func recordsPage(_ number: Int) -> UnsafeRawBufferPointer {
        let start = number * DocumentFormat.recordsPageBytes
        let end = DocumentFormat.recordsBytes(pages: map.pageCount)
        return unsafe UnsafeRawBufferPointer(
            start: records + start, count: min(DocumentFormat.recordsPageBytes, end - start))
    }

    private func record(_ number: Int) -> UnsafeRawPointer {
        let place = number % DocumentFormat.recordsPerPage * DocumentFormat.recordBytes
        return unsafe records + number / DocumentFormat.recordsPerPage * DocumentFormat.recordsPageBytes + 8 + place
    }

    /// The sum of a page.
    func sum(_ number: Int) -> UInt64 {
        unsafe UInt64(littleEndian: record(number).loadUnaligned(as: UInt64.self))
    }

    /// The number of a page among the leaves; more than there are if it is none.
    func leaf(_ number: Int) -> Int {
        unsafe Int(UInt32(littleEndian: record(number).loadUnaligned(fromByteOffset: 8, as: UInt32.self)))
    }
}
