internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage

/// Writes one file of a run, from its first byte to its last; of documents the LMDB file and the one beside it.
///
/// Memory: a few blocks, 1 MiB of output, and 16 bytes for each key of the hash index, which is built at the end.
@safe
struct RunWriter: ~Copyable {
    private let kind: RunKind
    /// The file of entries, or the one beside the LMDB file.
    private let file: File
    /// What writes the LMDB file.
    private let documents: DocumentWriter?
    private let space: (space: RunSpace, purpose: RunSpace.Purpose)?
    private let output: HeapBuffer
    private var outputBytes = 0
    /// Bytes of the file that have been written.
    private var writtenBytes = 0
    private var allocatedEnd = 0

    private var block: BlockBuilder
    /// Of the level being built: first key, version and number of each block.
    private var table: [UInt32] = []
    private var index = IndexEntries()
    private var hashed = PlaceList()
    private let scannedSpaces: ClosedRange<UInt8>?
    private var footer = RunFooter()
    private let lowestKey = HeapBuffer(capacity: EngineLimits.keyBytesMax)
    private let highestKey = HeapBuffer(capacity: EngineLimits.keyBytesMax)
    private let versionBytes: Int

    private static let outputBytesMax = 1 << 20

    /// Creates the file.
    /// - Parameters:
    ///   - kind: that of all keys.
    ///   - versions: the lowest and the highest version that entries may have.
    ///   - latestOnly: spaces whose keys come once.
    ///   - scannedSpaces: first bytes of keys that the hash index of a file of entries does not need.
    ///   - hashSeed: that of the store.
    ///   - space: where blocks come from when the disk has no others; nil outside of an engine.
    init(
        directory: String, number: UInt64, kind: RunKind, versions: ClosedRange<UInt64>,
        latestOnly: LatestOnlySpaces, scannedSpaces: ClosedRange<UInt8>?, hashSeed: UInt64,
        space: (space: RunSpace, purpose: RunSpace.Purpose)? = nil
    ) throws(StorageError) {
        let paths = RunFormat.fileNames(number, kind).map { directory + "/" + $0 }
        let documents =
            kind == .documents ? try DocumentWriter(paths[0], latestOnly: latestOnly, space: space) : nil
        let file = try File(paths[paths.count - 1], flags: O_RDWR | O_CREAT | O_TRUNC)
        self.kind = kind
        self.documents = documents
        self.file = file
        self.space = space
        self.scannedSpaces = kind == .entries ? scannedSpaces : nil
        output = HeapBuffer(capacity: Self.outputBytesMax + RunFormat.blockBytes * 4)
        var generator = SystemRandomNumberGenerator()
        footer.identity = generator.next()
        footer.hashSeed = hashSeed
        if kind == .entries, let scannedSpaces {
            footer.scannedSpaces = UInt64(scannedSpaces.lowerBound) | UInt64(scannedSpaces.upperBound) << 8
        }
        footer.versionMin = versions.lowerBound
        footer.versionMax = versions.upperBound
        versionBytes = versionWidth(from: versions.lowerBound, to: versions.upperBound)
        block = BlockBuilder(level: 0, versionBytes: versionBytes)
    }

    var entryCount: Int { Int(footer.entryCount) }

    /// Bytes of the file so far, without its indexes; of documents about so many.
    var byteCount: Int { documents?.byteCount ?? (writtenBytes + outputBytes + block.byteCount) }

    /// Whether a key belongs to a file of this kind.
    @inline(__always)
    func takes(_ key: UnsafeRawBufferPointer) -> Bool { unsafe RunKind(of: key) == kind }

    /// The key of the last entry; valid until the next one is added.
    var lastKey: UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: highestKey.start, count: Int(footer.highestKeyBytes))
    }

    /// Adds an entry. Keys come in ascending order, and for one key versions in descending order.
    /// - Parameters:
    ///   - value: nil for a tombstone.
    ///   - superseded: the version of the entry before, if that has the same key.
    mutating func add(
        _ key: UnsafeRawBufferPointer, version: UInt64, _ value: UnsafeRawBufferPointer?, superseded: UInt64?
    ) throws(StorageError) {
        if let documents {
            unsafe try documents.append(key, version: version, value)
        } else {
            if block.isFull { try closeBlock() }
            unsafe block.add(key, version: version &- footer.versionMin, value)
            if block.count == 1 { unsafe index.add(key, version &- footer.versionMin) }
        }
        footer.entryCount &+= 1
        unsafe footer.contentBytes &+= UInt64(key.count &+ (value?.count ?? 0))
        if unsafe value == nil { footer.tombstoneCount &+= 1 }
        if let superseded {
            footer.supersededCount &+= 1
            if superseded < footer.oldestSuperseded { footer.oldestSuperseded = superseded }
        } else {
            if unsafe documents == nil && scannedSpaces?.contains(key[0]) != true { unsafe addToHashIndex(key) }
            unsafe highestKey.start.copyMemory(from: key.baseAddress!, byteCount: key.count)
            footer.highestKeyBytes = UInt64(key.count)
            if footer.entryCount == 1 {
                unsafe lowestKey.start.copyMemory(from: key.baseAddress!, byteCount: key.count)
                footer.lowestKeyBytes = UInt64(key.count)
            }
        }
    }

    /// Completes the file and makes it durable; its name is durable after a sync of its directory. There must be an
    /// entry.
    /// - Returns: the footer, and the size of the file, or of both files together.
    consuming func finish() throws(StorageError) -> (footer: RunFooter, byteCount: Int) {
        var lmdbBytes = 0
        if let documents {
            lmdbBytes = try finishDocuments(documents)
        } else {
            try closeBlock()
            footer.dataBlockCount = UInt64(table.count)
            try writeIndex()
            footer.blockCount = UInt64(table.count)
            try writeTable()
        }
        try writeHashIndex()
        try writeFooter()
        try flush()
        try file.syncData()
        return (footer, lmdbBytes + writtenBytes)
    }

    /// Completes the LMDB file and writes the table of its leaves and the records of its pages.
    /// - Returns: the size of the LMDB file.
    private mutating func finishDocuments(_ documents: DocumentWriter) throws(StorageError) -> Int {
        let layout = try documents.finish(identity: footer.identity, hashSeed: footer.hashSeed)
        footer.documents = layout.footer
        footer.dataBlockCount = UInt64(layout.leaves.count)
        footer.blockCount = UInt64(layout.leaves.count)
        table = layout.leaves
        try writeTable()
        let offset = writtenBytes + outputBytes
        footer.documents?.recordsOffset = UInt64(offset)
        let records = layout.encodedRecords(identity: footer.identity, offset: offset)
        unsafe try append(UnsafeRawBufferPointer(records.all))
        for place in layout.places { hashed.append(place) }
        return Int(layout.footer.pageCount * layout.footer.pageBytes)
    }

    // MARK: Parts

    private mutating func closeBlock() throws(StorageError) {
        guard !block.isEmpty else { return }
        let offset = writtenBytes + outputBytes
        table.append(UInt32(offset / RunFormat.alignment))
        unsafe try append(block.finish(identity: footer.identity, offset: offset))
        block.removeAll()
    }

    /// Writes the levels of the index until one has a single block.
    private mutating func writeIndex() throws(StorageError) {
        var first = 0
        var level: UInt8 = 0
        while table.count - first > 1 {
            level += 1
            let children = index
            index = IndexEntries()
            block = BlockBuilder(level: level, versionBytes: versionBytes)
            let next = table.count
            for child in 0..<children.count {
                if block.isFull { try closeBlock() }
                let number = UInt32(first + child)
                unsafe try withUnsafeBytes(of: number.littleEndian) { value throws(StorageError) in
                    unsafe children.withEntry(child) { key, version in
                        unsafe block.add(key, version: version, value)
                        if block.count == 1 { unsafe index.add(key, version) }
                    }
                }
            }
            try closeBlock()
            first = next
        }
    }

    private mutating func writeTable() throws(StorageError) {
        footer.tableOffset = UInt64(writtenBytes + outputBytes)
        let bytes = HeapBuffer(capacity: max(table.count * 4, 4))
        for index in table.indices {
            unsafe bytes.start.storeBytes(of: table[index].littleEndian, toByteOffset: index * 4, as: UInt32.self)
        }
        let contents = unsafe UnsafeRawBufferPointer(rebasing: bytes.all[..<(table.count * 4)])
        footer.tableSum = unsafe RunFormat.sum(
            contents.baseAddress!, contents.count, identity: footer.identity, offset: Int(footer.tableOffset))
        unsafe try append(contents)
    }

    /// Adds the last entry of the block to the hash index.
    private mutating func addToHashIndex(_ key: UnsafeRawBufferPointer) {
        let hash = unsafe RunHashIndex.hash(key, seed: footer.hashSeed)
        hashed.append(RunHashIndex.Place(hash: hash, block: writtenBytes + outputBytes, entry: block.lastSlot))
    }

    private mutating func writeHashIndex() throws(StorageError) {
        let offset = writtenBytes + outputBytes
        let pages = HeapBuffer(capacity: RunHashIndex.pageBytes)
        let count = unsafe RunHashIndex.build(hashed.all, identity: footer.identity, offset: offset, into: pages)
        footer.hashOffset = UInt64(offset)
        footer.hashPageCount = UInt64(count)
        unsafe try append(UnsafeRawBufferPointer(rebasing: pages.all[..<(count * RunHashIndex.pageBytes)]))
    }

    private mutating func writeFooter() throws(StorageError) {
        let buffer = HeapBuffer(capacity: footer.byteCount)
        let (low, high) = (Int(footer.lowestKeyBytes), Int(footer.highestKeyBytes))
        unsafe buffer.start.copyMemory(from: lowestKey.start, byteCount: low)
        unsafe (buffer.start + low).copyMemory(from: highestKey.start, byteCount: high)
        var place = low + high
        for field in footer.fields + [footer.magic] {
            unsafe buffer.start.storeBytes(of: field.littleEndian, toByteOffset: place, as: UInt64.self)
            place += 8
        }
        let offset = writtenBytes + outputBytes
        let sum = unsafe RunFormat.sum(buffer.start, place, identity: footer.identity, offset: offset)
        unsafe buffer.start.storeBytes(of: sum, toByteOffset: place, as: UInt64.self)
        unsafe try append(UnsafeRawBufferPointer(rebasing: buffer.all[..<(place + 8)]), isLast: true)
    }

    // MARK: Output

    /// Appends bytes, and zeros up to the alignment.
    private mutating func append(_ bytes: UnsafeRawBufferPointer, isLast: Bool = false) throws(StorageError) {
        let padded = isLast ? bytes.count : RunFormat.align(bytes.count)
        output.reserve(outputBytes + padded, keeping: outputBytes)
        let place = unsafe output.start + outputBytes
        if bytes.count > 0 { unsafe place.copyMemory(from: bytes.baseAddress!, byteCount: bytes.count) }
        for index in bytes.count..<padded { unsafe place.storeBytes(of: 0, toByteOffset: index, as: UInt8.self) }
        outputBytes += padded
        if outputBytes >= Self.outputBytesMax { try flush() }
    }

    private mutating func flush() throws(StorageError) {
        guard outputBytes > 0 else { return }
        let end = writtenBytes + outputBytes
        if let space { try space.space.provide(file, from: &allocatedEnd, to: end, for: space.purpose) }
        unsafe try file.write(UnsafeRawBufferPointer(rebasing: output.all[..<outputBytes]), at: writtenBytes)
        writtenBytes = end
        outputBytes = 0
        output.shrink(to: Self.outputBytesMax + RunFormat.blockBytes * 4)
    }
}

/// The first entries of the blocks of a level, in the memory of a writer.
@safe
private struct IndexEntries {
    private var keys: [UInt8] = []
    private var ends: [Int] = []
    private var versions: [UInt64] = []

    var count: Int { ends.count }

    mutating func add(_ key: UnsafeRawBufferPointer, _ version: UInt64) {
        unsafe keys.append(contentsOf: key)
        ends.append(keys.count)
        versions.append(version)
    }

    func withEntry(_ index: Int, _ body: (UnsafeRawBufferPointer, UInt64) -> Void) {
        let start = index == 0 ? 0 : ends[index - 1]
        unsafe keys.withUnsafeBytes { bytes in
            unsafe body(UnsafeRawBufferPointer(rebasing: bytes[start..<ends[index]]), versions[index])
        }
    }
}

/// The keys of a hash index.
@safe
struct PlaceList: ~Copyable {
    private var memory: UnsafeMutablePointer<RunHashIndex.Place>
    private var capacity = 4096
    private var count = 0

    init() { unsafe memory = .allocate(capacity: capacity) }

    deinit { unsafe memory.deallocate() }

    var all: UnsafeBufferPointer<RunHashIndex.Place> { unsafe UnsafeBufferPointer(start: memory, count: count) }

    @inline(__always)
    mutating func append(_ place: RunHashIndex.Place) {
        if count == capacity { grow() }
        unsafe (memory + count).initialize(to: place)
        count &+= 1
    }

    private mutating func grow() {
        let larger = UnsafeMutablePointer<RunHashIndex.Place>.allocate(capacity: capacity * 2)
        unsafe larger.initialize(from: memory, count: count)
        unsafe memory.deallocate()
        unsafe memory = larger
        capacity *= 2
    }
}
