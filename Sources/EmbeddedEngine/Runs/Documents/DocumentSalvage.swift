internal import Basics
internal import FileSystem
internal import Storage
internal import Synchronization

/// Reads what is intact of an LMDB file: each value has a checksum, which covers its version and its key. Pages may be
/// damaged, and the side file may be missing.
@safe
struct DocumentSalvage {
    /// What the file is in.
    let directory: String
    let number: UInt64
    /// What the manifest says about the file, if there is a manifest.
    let part: Manifest.Part?
    /// Keys below this are not of the run any more.
    let lowerBound: [UInt8]
    let sink: any SalvageSink

    private var path: String { directory + "/" + RunFormat.fileNames(number, .documents)[0] }

    /// Gives each intact entry to the sink, in no order, some of them twice, and notes what cannot be read.
    /// - Throws: what the sink throws.
    func run() throws {
        let opened: (maps: [FileMap], words: UnsafeMutableBufferPointer<Atomic<UInt64>>)
        do throws(StorageError) {
            unsafe opened = try FileMap.open([path])
        } catch {
            return sink.note(error.description)
        }
        let file = unsafe opened.maps[0]
        defer {
            file.close()
            unsafe opened.words.deallocate()
        }
        // With an intact side file it is known which pages are leaves, and how many entries there are.
        if let known = try? RunFile(directory: directory, number: number, kind: .documents, identity: part?.identity),
            let documents = known.footer.documents
        {
            defer { withExtendedLifetime(known) {} }
            return try readLeaves(known, Self.map(file, pageBytes: Int(documents.pageBytes)))
        }
        try scan(Self.map(file, pageBytes: Self.pageBytes(file)))
    }

    private static func map(_ file: FileMap, pageBytes: Int) -> DocumentMap {
        unsafe DocumentMap(
            base: file.base, byteCount: file.byteCount / pageBytes * pageBytes,
            pageShift: pageBytes.trailingZeroBitCount, latestOnlySpaces: 0)
    }

    /// The bytes of a page, or what most systems have if neither meta page says it.
    private static func pageBytes(_ file: FileMap) -> Int {
        unsafe LMDBMeta(file.base, byteCount: file.byteCount)?.pageBytes ?? LMDBFormat.pageBytesMin
    }

    // MARK: With a side file

    private func readLeaves(_ file: RunFile, _ map: DocumentMap) throws {
        var found = 0
        for leaf in 0..<file.part.dataBlockCount {
            let offset = file.part.offset(ofBlock: leaf)
            guard offset + 1 << map.pageShift <= map.byteCount else { continue }
            let page = map.page(at: offset)
            let (intact, damaged) = try read(page, map)
            // Entries of a leaf that a disk has put in the place of another one are counted where they belong.
            let own = page.number == UInt64(offset >> map.pageShift) ? intact : 0
            found += own
            if damaged > 0 || own == 0 {
                sink.note("\(path): the page at \(offset) is damaged, \(own) entries are intact")
            }
        }
        let lost = Int(clamping: file.footer.entryCount) - found
        if lost > 0 { sink.note("\(path): \(lost) of \(file.footer.entryCount) entries cannot be read") }
    }

    // MARK: Without

    /// Looks at all pages. Former states of a leaf, which LMDB leaves in the file, have entries of the file too.
    private func scan(_ map: DocumentMap) throws {
        sink.note("\(path): the side file is not usable; entries are taken by their checksums, others are not known")
        var number = 2
        while number < map.pageCount {
            let page = map.page(at: number << map.pageShift)
            let isPage = page.number == UInt64(number)
            if isPage && page.flags == LMDBFormat.overflow {
                // What users wrote may look like a leaf.
                number += max(page.overflowPageCount, 1)
                continue
            }
            if isPage && page.flags & LMDBFormat.leaf != 0 {
                let (_, damaged) = try read(page, map)
                if damaged > 0 { sink.note("\(path): \(damaged) entries on page \(number) are damaged") }
            }
            number += 1
        }
    }

    // MARK: Entries

    /// Gives the intact entries of a leaf to the sink.
    private func read(_ page: LMDBPage, _ map: DocumentMap) throws -> (intact: Int, damaged: Int) {
        var (intact, damaged) = (0, 0)
        for index in 0..<page.count {
            if try take(page.node(index), map) { intact += 1 } else { damaged += 1 }
        }
        return (intact, damaged)
    }

    /// - Returns: false if the entry is damaged.
    private func take(_ node: LMDBNode, _ map: DocumentMap) throws -> Bool {
        let key = unsafe node.key
        let data = unsafe map.data(of: node)
        guard key.count > 0, data.count >= DocumentFormat.headerBytes else { return false }
        let summed = unsafe UnsafeRawBufferPointer(rebasing: data[DocumentFormat.versionOffset...])
        let sum = unsafe UInt32(littleEndian: data.loadUnaligned(as: UInt32.self))
        let kind = unsafe data[DocumentFormat.kindOffset]
        guard unsafe DocumentFormat.sum(key, summed) == sum, kind <= 1 else { return false }
        let version = unsafe UInt64(
            littleEndian: data.loadUnaligned(fromByteOffset: DocumentFormat.versionOffset, as: UInt64.self))
        let name = unsafe Self.name(key, version)
        let isMoved = unsafe lowerBound.withUnsafeBytes { unsafe compareBytes(name, $0) < 0 }
        if isMoved { return true }
        let contents = unsafe UnsafeRawBufferPointer(rebasing: data[DocumentFormat.headerBytes...])
        let value = unsafe kind == 0 ? nil : contents
        try unsafe sink.take(key: name, version: CommitVersion(microseconds: version), value: value)
        return true
    }

    /// The key without its version. Keys of spaces that keep the latest value only have none.
    private static func name(_ key: UnsafeRawBufferPointer, _ version: UInt64) -> UnsafeRawBufferPointer {
        let count = key.count - DocumentFormat.versionBytes
        guard count > 0 else { return unsafe key }
        let inverted = unsafe UInt64(bigEndian: key.loadUnaligned(fromByteOffset: count, as: UInt64.self))
        return unsafe inverted == ~version ? UnsafeRawBufferPointer(rebasing: key[..<count]) : key
    }
}
