internal import Basics
internal import CXXHash
internal import FileSystem
internal import Glibc
internal import Storage

/// Writes the LMDB file of a document file, from its first entry to its last.
///
/// Memory: what a transaction writes, 8 MiB and a value.
@safe
final class DocumentWriter {
    let file: File
    private let lmdb: LMDBAppender
    private let space: (space: RunSpace, purpose: RunSpace.Purpose)?
    private let latestOnly: LatestOnlySpaces
    private let key = HeapBuffer(capacity: LMDBFormat.keyBytesMax + 1)
    private var allocatedEnd = 0
    /// Bytes that were added since the last transaction, and before it.
    private var pendingBytes = 0
    private var committedBytes = 0

    /// Pages beyond those of the database: both meta pages, and the list of free pages.
    private static let furtherPages = 16

    /// Creates the file.
    init(
        _ path: String, latestOnly: LatestOnlySpaces, space: (space: RunSpace, purpose: RunSpace.Purpose)?
    ) throws(StorageError) {
        file = try File(path, flags: O_RDWR | O_CREAT | O_TRUNC)
        self.space = space
        self.latestOnly = latestOnly
        // LMDB writes the meta pages of a new file at once.
        try Self.allocate(file, &allocatedEnd, to: Self.furtherPages * LMDBFormat.pageBytesMin, space)
        lmdb = try LMDBAppender(path)
    }

    /// About how many bytes the file has so far.
    var byteCount: Int { committedBytes + pendingBytes }

    /// Adds an entry. Keys come in ascending order, and for one key versions in descending order.
    /// - Parameter value: nil for a tombstone.
    func append(
        _ name: UnsafeRawBufferPointer, version: UInt64, _ value: UnsafeRawBufferPointer?
    ) throws(StorageError) {
        if pendingBytes >= DocumentFormat.transactionBytes { try commit() }
        let key = unsafe lmdbKey(name, version)
        let byteCount = unsafe DocumentFormat.headerBytes + (value?.count ?? 0)
        unsafe try lmdb.append(key, byteCount: byteCount) { data in
            unsafe data.storeBytes(
                of: version.littleEndian, toByteOffset: DocumentFormat.versionOffset, as: UInt64.self)
            unsafe data[DocumentFormat.kindOffset] = value == nil ? 0 : 1
            if let value = unsafe value {
                unsafe UnsafeMutableRawBufferPointer(rebasing: data[DocumentFormat.headerBytes...]).copyMemory(
                    from: value)
            }
            let summed = unsafe UnsafeRawBufferPointer(rebasing: data[DocumentFormat.versionOffset...])
            unsafe data.storeBytes(of: DocumentFormat.sum(key, summed).littleEndian, as: UInt32.self)
        }
        pendingBytes += LMDBFormat.nodeHeaderBytes + 2 + key.count + byteCount
    }

    private func lmdbKey(_ name: UnsafeRawBufferPointer, _ version: UInt64) -> UnsafeRawBufferPointer {
        if unsafe latestOnly.contains(name) { return unsafe name }
        unsafe key.start.copyMemory(from: name.baseAddress!, byteCount: name.count)
        unsafe key.start.storeBytes(of: (~version).bigEndian, toByteOffset: name.count, as: UInt64.self)
        return unsafe UnsafeRawBufferPointer(
            rebasing: key.all[..<(name.count + DocumentFormat.versionBytes)])
    }

    private func commit() throws(StorageError) {
        let (pages, pageBytes) = try lmdb.pageCount()
        let end = (pages + Self.furtherPages) * pageBytes
        if end > allocatedEnd { try Self.allocate(file, &allocatedEnd, to: end, space) }
        try lmdb.commit()
        committedBytes = pages * pageBytes
        pendingBytes = 0
    }

    /// Allocates blocks before LMDB writes: of a disk without space it only says that a write was short.
    private static func allocate(
        _ file: File, _ allocatedEnd: inout Int, to end: Int, _ space: (space: RunSpace, purpose: RunSpace.Purpose)?
    ) throws(StorageError) {
        if let space { return try space.space.provide(file, from: &allocatedEnd, to: end, for: space.purpose) }
        _ = try file.allocate(from: allocatedEnd, to: end)
        allocatedEnd = end
    }

    /// Completes the file and makes it durable; its name is durable after a sync of its directory.
    /// - Returns: what its pages are.
    /// - Throws: `corrupt` if the file is not what LMDB should have written.
    func finish(identity: UInt64, hashSeed: UInt64) throws(StorageError) -> DocumentLayout {
        try commit()
        lmdb.close()
        let byteCount = try file.byteCount()
        // Gives back the blocks beyond the end.
        if byteCount < allocatedEnd { try file.resize(to: byteCount) }
        let base = unsafe try file.map(byteCount: byteCount)
        defer { unsafe munmap(base, byteCount) }
        unsafe try file.noteWritten(UnsafeRawBufferPointer(start: base, count: byteCount))
        // Of a page that cannot be read the sum would be that of zeros.
        let faults = LibraryFaults(file: file.path)
        let layout = faults.reading {
            unsafe DocumentLayout(
                base, byteCount: byteCount, latestOnlySpaces: latestOnly.ofDocuments, identity: identity,
                hashSeed: hashSeed)
        }
        try faults.check()
        guard let layout else {
            throw StorageError(.inputOutput, "LMDB has not written the file as expected", file: file.path)
        }
        try file.syncData()
        return layout
    }
}

/// What the pages of an LMDB file are: what the file beside it says.
@safe
struct DocumentLayout {
    private(set) var footer = DocumentFooter()
    /// The offset / 8 of each leaf, in the order of keys.
    private(set) var leaves: [UInt32] = []
    /// Sums and numbers, without checksums.
    private(set) var records: [(sum: UInt64, leaf: UInt32)] = []
    /// The newest entry of each key.
    private(set) var places: [RunHashIndex.Place] = []

    /// Reads all pages; nil if they are not a tree with an entry.
    init?(
        _ base: UnsafeRawPointer, byteCount: Int, latestOnlySpaces: UInt64, identity: UInt64, hashSeed: UInt64
    ) {
        guard let meta = unsafe LMDBMeta(base, byteCount: byteCount) else { return nil }
        let map = unsafe DocumentMap(
            base: base, byteCount: byteCount, pageShift: meta.pageBytes.trailingZeroBitCount,
            latestOnlySpaces: latestOnlySpaces)
        footer.pageBytes = UInt64(meta.pageBytes)
        footer.pageCount = UInt64(map.pageCount)
        footer.root = UInt64(meta.root)
        footer.depth = UInt64(meta.depth)
        footer.latestOnlySpaces = latestOnlySpaces
        records.reserveCapacity(map.pageCount)
        for page in 0..<map.pageCount {
            let offset = page * meta.pageBytes
            let sum = unsafe RunFormat.sum(base + offset, meta.pageBytes, identity: identity, offset: offset)
            records.append((sum, DocumentFormat.noLeaf))
        }
        guard add(meta.root, levels: meta.depth - 1, in: map, hashSeed: hashSeed) else { return nil }
    }

    /// Adds the leaves below a page; false if something is not a page of a tree.
    private mutating func add(_ number: Int, levels: Int, in map: DocumentMap, hashSeed: UInt64) -> Bool {
        guard (2..<map.pageCount).contains(number) else { return false }
        let page = map.page(at: number << map.pageShift)
        guard page.count > 0, page.flags == (levels == 0 ? LMDBFormat.leaf : LMDBFormat.branch) else { return false }
        if levels == 0 {
            addLeaf(number, page, in: map, hashSeed: hashSeed)
            return true
        }
        return (0..<page.count).allSatisfy {
            add(page.node($0).child, levels: levels - 1, in: map, hashSeed: hashSeed)
        }
    }

    private mutating func addLeaf(_ number: Int, _ page: LMDBPage, in map: DocumentMap, hashSeed: UInt64) {
        let offset = number << map.pageShift
        records[number].leaf = UInt32(leaves.count)
        leaves.append(UInt32(offset / RunFormat.alignment))
        for index in 0..<page.count {
            let place = page.nodeOffset(index)
            let stored = unsafe page.node(at: place).key
            let key = unsafe map.split(stored).key
            let before = unsafe index > 0 ? map.split(page.node(index - 1).key).key : lastKey(in: map)
            if unsafe before.count == key.count && compareBytes(before, key) == 0 { continue }
            let hash = unsafe RunHashIndex.hash(key, seed: hashSeed)
            places.append(RunHashIndex.Place(hash: hash, page: offset, node: place))
        }
    }

    /// The last key of the leaf before the last one; empty if there is none.
    private func lastKey(in map: DocumentMap) -> UnsafeRawBufferPointer {
        guard leaves.count > 1 else { return unsafe UnsafeRawBufferPointer(start: nil, count: 0) }
        let page = map.page(at: Int(leaves[leaves.count - 2]) * RunFormat.alignment)
        return unsafe map.split(page.node(page.count - 1).key).key
    }
}

extension DocumentLayout {
    /// The records as the side file has them.
    /// - Parameter offset: where they begin in the file.
    func encodedRecords(identity: UInt64, offset: Int) -> HeapBuffer {
        let buffer = HeapBuffer(capacity: max(DocumentFormat.recordsBytes(pages: records.count), 1))
        for first in stride(from: 0, to: records.count, by: DocumentFormat.recordsPerPage) {
            let start = first / DocumentFormat.recordsPerPage * DocumentFormat.recordsPageBytes
            let page = unsafe buffer.start + start
            let count = min(DocumentFormat.recordsPerPage, records.count - first)
            for index in 0..<count {
                let place = unsafe page + 8 + index * DocumentFormat.recordBytes
                unsafe place.storeBytes(of: records[first + index].sum.littleEndian, as: UInt64.self)
                unsafe place.storeBytes(of: records[first + index].leaf.littleEndian, toByteOffset: 8, as: UInt32.self)
            }
            var bytes = count * DocumentFormat.recordBytes
            if count == DocumentFormat.recordsPerPage {
                // The rest of the page.
                let end = 8 + bytes
                let rest = DocumentFormat.recordsPageBytes - end
                unsafe (page + end).initializeMemory(as: UInt8.self, repeating: 0, count: rest)
                bytes += rest
            }
            let sum = unsafe RunFormat.sum(page + 8, bytes, identity: identity, offset: offset + start)
            unsafe page.storeBytes(of: sum.littleEndian, as: UInt64.self)
        }
        return buffer
    }
}
