internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage

/// The map of an LMDB file. Valid while its ``RunFile`` is.
@safe
struct DocumentMap {
    let base: UnsafeRawPointer
    let byteCount: Int
    let pageShift: Int
    /// `DocumentFooter.latestOnlySpaces`.
    let latestOnlySpaces: UInt64

    var pageCount: Int { byteCount >> pageShift }

    /// - Parameter offset: of a page that is in the map.
    @inline(__always)
    func page(at offset: Int) -> LMDBPage { unsafe LMDBPage(start: base + offset, byteCount: 1 &<< pageShift) }

    /// Whether an LMDB key that is not empty ends with the version.
    @inline(__always)
    func hasVersion(_ key: UnsafeRawBufferPointer) -> Bool {
        unsafe latestOnlySpaces &>> UInt64(key[0] & 63) & 1 == 0
    }

    /// The entry of a node in a leaf. The pages of a value that lies apart from its key may not be verified.
    @inline(__always)
    func entry(_ node: LMDBNode) -> Block.Entry {
        let key = unsafe node.key
        let data = unsafe node.isLarge ? largeData(node) : node.inlineData
        guard key.count > 0, data.count >= DocumentFormat.headerBytes else {
            // Only where a page is zeros.
            let none = unsafe UnsafeRawBufferPointer(rebasing: key.prefix(0))
            return unsafe Block.Entry(shared: 0, suffix: none, version: 0, value: nil)
        }
        let (name, version) = unsafe split(key)
        let stored = unsafe data.loadUnaligned(fromByteOffset: DocumentFormat.versionOffset, as: UInt64.self)
        let contents = unsafe UnsafeRawBufferPointer(rebasing: data[DocumentFormat.headerBytes...])
        // A tombstone is never large. What a page that is not verified says about that does not matter.
        let isTombstone = unsafe !node.isLarge && data[DocumentFormat.kindOffset] == 0
        return unsafe Block.Entry(
            shared: 0, suffix: name, version: version ?? UInt64(littleEndian: stored),
            value: isTombstone ? nil : contents)
    }

    /// Data on overflow pages, as far as it is in the map.
    private func largeData(_ node: LMDBNode) -> UnsafeRawBufferPointer {
        let number = node.overflowPage
        guard number < pageCount else { return unsafe UnsafeRawBufferPointer(start: base, count: 0) }
        let start = number << pageShift + LMDBFormat.headerBytes
        return unsafe UnsafeRawBufferPointer(start: base + start, count: min(node.dataCount, byteCount - start))
    }

    /// Key and version of an LMDB key that is not empty; nil if the version is not in it.
    @inline(__always)
    func split(_ key: UnsafeRawBufferPointer) -> (key: UnsafeRawBufferPointer, version: UInt64?) {
        guard unsafe hasVersion(key), key.count >= DocumentFormat.versionBytes else { return unsafe (key, nil) }
        let count = key.count &- DocumentFormat.versionBytes
        let inverted = unsafe UInt64(bigEndian: key.loadUnaligned(fromByteOffset: count, as: UInt64.self))
        return unsafe (UnsafeRawBufferPointer(start: key.baseAddress!, count: count), ~inverted)
    }

    /// Orders an LMDB key against a key at a version: negative, zero or positive. A key without its version is as new
    /// as what it is compared with.
    ///
    /// This is the order of the bytes as LMDB sees them: in spaces with history no key is a prefix of another.
    func order(_ stored: UnsafeRawBufferPointer, _ key: UnsafeRawBufferPointer, _ version: UInt64) -> Int {
        guard stored.count > 0 else { return -1 }
        let (name, storedVersion) = unsafe split(stored)
        let order = unsafe compareBytes(name, key)
        guard order == 0, let storedVersion, storedVersion != version else { return order }
        return storedVersion > version ? -1 : 1
    }

    /// The page below a branch page in which (key, version), or what comes before it, is found.
    func child(of branch: LMDBPage, _ key: UnsafeRawBufferPointer, _ version: UInt64) -> Int {
        // The first node after it; the first of all has no key.
        var low = 1
        var high = branch.count
        while low < high {
            let middle = (low &+ high) &>> 1
            if unsafe order(branch.node(middle).key, key, version) <= 0 { low = middle &+ 1 } else { high = middle }
        }
        return branch.node(low &- 1).child
    }
}

/// A leaf of an LMDB file, verified and in place: its entries have their whole keys. Valid as long as its file is
/// mapped.
@safe
struct DocumentLeaf {
    private let page: LMDBPage
    private let map: DocumentMap
    let count: Int

    /// - Parameter offset: of a leaf that has the right sum.
    @inline(__always)
    init(_ map: DocumentMap, at offset: Int) {
        self.map = map
        page = map.page(at: offset)
        count = page.count
    }

    var start: UnsafeRawPointer { unsafe page.start }

    @inline(__always)
    func entry(_ index: Int) -> Block.Entry { unsafe map.entry(page.node(index)) }

    /// The first entry that is not before (key, version); `count` if there is none.
    func search(_ key: UnsafeRawBufferPointer, version: UInt64) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low &+ high) &>> 1
            if unsafe map.order(page.node(middle).key, key, version) < 0 { low = middle &+ 1 } else { high = middle }
        }
        // The version of a key that keeps the latest value only is in the value.
        if low < count, unsafe !map.hasVersion(key), unsafe hasKey(key, at: low), unsafe entry(low).version > version {
            return low &+ 1
        }
        return low
    }

    @inline(__always)
    func hasKey(_ key: UnsafeRawBufferPointer, at index: Int) -> Bool {
        unsafe Self.has(page.node(index), key, map)
    }

    /// The entry of a node at an offset if it has this key.
    @inline(__always)
    static func entry(of key: UnsafeRawBufferPointer, in map: DocumentMap, _ page: Int, at offset: Int) -> Block.Entry?
    {
        let node = map.page(at: page).node(at: offset)
        guard unsafe has(node, key, map) else { return nil }
        return unsafe map.entry(node)
    }

    @inline(__always)
    private static func has(_ node: LMDBNode, _ key: UnsafeRawBufferPointer, _ map: DocumentMap) -> Bool {
        let stored = unsafe node.key
        let versionBytes = unsafe map.hasVersion(key) ? DocumentFormat.versionBytes : 0
        guard stored.count == key.count &+ versionBytes else { return false }
        return unsafe memcmp(stored.baseAddress!, key.baseAddress!, key.count) == 0
    }
}

/// A block of entries or a leaf of documents, verified and in place. Valid as long as its file is mapped.
@safe
enum RunBlock {
    case entries(Block)
    case documents(DocumentLeaf)

    /// Where it begins, which no other block has.
    @inline(__always)
    var start: UnsafeRawPointer {
        switch self {
        case .entries(let block): unsafe block.base
        case .documents(let leaf): unsafe leaf.start
        }
    }

    @inline(__always)
    var count: Int {
        switch self {
        case .entries(let block): block.count
        case .documents(let leaf): leaf.count
        }
    }

    /// The key with which entries share a prefix; empty in leaves, where none do.
    @inline(__always)
    var firstKey: UnsafeRawBufferPointer {
        switch self {
        case .entries(let block): unsafe block.firstKey
        case .documents: unsafe UnsafeRawBufferPointer(start: nil, count: 0)
        }
    }

    @inline(__always)
    func entry(_ index: Int) -> Block.Entry {
        switch self {
        case .entries(let block): unsafe block.entry(index)
        case .documents(let leaf): unsafe leaf.entry(index)
        }
    }

    /// The first entry that is not before (key, version); `count` if there is none.
    /// - Parameter version: less the lowest version of the file (`RunPart.versionMin`).
    func search(_ key: UnsafeRawBufferPointer, version: UInt64) -> Int {
        switch self {
        case .entries(let block): unsafe block.search(key, version: version)
        case .documents(let leaf): unsafe leaf.search(key, version: version)
        }
    }

    @inline(__always)
    func hasKey(_ key: UnsafeRawBufferPointer, at index: Int) -> Bool {
        switch self {
        case .entries(let block): unsafe block.hasKey(key, at: index)
        case .documents(let leaf): unsafe leaf.hasKey(key, at: index)
        }
    }
}
