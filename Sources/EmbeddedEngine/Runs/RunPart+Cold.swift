// Places of a run's file that may not be in memory: whether they are, and how they get there.
//
//     verified    the checksum was right; stays until a fault
//     warm        verified, and in memory when it was last looked at: reads go ahead without asking anything
//
// A read that meets a place which is not warm asks the kernel (mincore(2)). If the place is in memory, the read goes
// ahead. Otherwise a read that pends notes it, and threads for pages read and verify it. The kernel may drop pages at
// any time; a sweep in the background finds them and takes the marks away.

internal import Glibc
internal import Storage
internal import Synchronization

extension RunPart {
    /// - Parameter wanted: what is noted if the place is not in memory, if that is more than the place.
    /// - Throws: `pending` if a place is not in memory, which is noted.
    func checkResident(
        _ place: ColdPlace, _ cold: ColdReads, noting wanted: ColdPlace? = nil
    ) throws(StorageError) {
        var isPending = false
        if !isResident(place, cold) {
            cold.note(wanted ?? place, in: number)
            isPending = true
        }
        if let records = records(for: place), !isWarm(recordsBit(records)), !isResident(.records(records), cold) {
            cold.note(.records(records), in: number)
            isPending = true
        }
        if isPending { throw .pending }
    }

    /// The page of records that is needed to verify a page.
    private func records(for place: ColdPlace) -> Int? {
        guard documents != nil else { return nil }
        switch place {
        case .block(_, let bit): return bit / DocumentFormat.recordsPerPage
        case .pages(let numbers): return numbers.lowerBound / DocumentFormat.recordsPerPage
        case .hashPage, .records, .ahead: return nil
        }
    }

    private func isResident(_ place: ColdPlace, _ cold: ColdReads) -> Bool {
        if cold.meetsPagesCold { return false }
        guard unsafe Self.isResident(bytes(of: place)) else { return false }
        return unsafe rest(of: place).map { unsafe Self.isResident($0) } ?? true
    }

    /// Where a place lies; of a block of entries what each has at least.
    private func bytes(of place: ColdPlace) -> UnsafeRawBufferPointer {
        switch place {
        case .block(let offset, _):
            let count = documents.map { 1 << $0.map.pageShift } ?? RunFormat.blockBytes
            return unsafe bytes(offset..<offset + count)
        case .pages(let numbers):
            guard let shift = documents?.map.pageShift else { return unsafe bytes(0..<0) }
            return unsafe bytes(numbers.lowerBound << shift..<(numbers.upperBound + 1) << shift)
        case .hashPage(let number):
            return unsafe UnsafeRawBufferPointer(
                start: hashIndex + number * RunHashIndex.pageBytes, count: RunHashIndex.pageBytes)
        case .records(let page): return unsafe documents?.recordsPage(page) ?? bytes(0..<0)
        case .ahead(let range): return unsafe bytes(range)
        }
    }

    /// Bytes of the file with the data, as far as it has them.
    private func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        let range = range.clamped(to: 0..<byteCount)
        return unsafe UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count)
    }

    /// What a block of entries has beyond `bytes(of:)`, which must be in memory.
    private func rest(of place: ColdPlace) -> UnsafeRawBufferPointer? {
        guard documents == nil, case .block(let offset, _) = place, offset + BlockField.entries <= byteCount else {
            return nil
        }
        let length = unsafe Int((base + offset).loadUnaligned(fromByteOffset: BlockField.byteCount, as: UInt32.self))
        guard length > RunFormat.blockBytes else { return nil }
        return unsafe bytes(offset + RunFormat.blockBytes..<offset + length)
    }

    // MARK: The kernel

    private static let pageBytes = 4096

    /// The bytes from the beginning of the page of the system in which they begin.
    private static func fromPageStart(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutableRawBufferPointer {
        let distance = UInt(bitPattern: bytes.baseAddress) % UInt(pageBytes)
        return unsafe UnsafeMutableRawBufferPointer(
            start: UnsafeMutableRawPointer(mutating: bytes.baseAddress.map { unsafe $0 - Int(distance) }),
            count: bytes.count + Int(distance))
    }

    /// Whether these bytes of a map can be read without waiting for a disk. True where the system does not say it.
    static func isResident(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if bytes.count == 0 { return true }
        let memory = unsafe fromPageStart(bytes)
        let pageCount = (memory.count + pageBytes - 1) / pageBytes
        return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: pageCount) { states in
            guard unsafe mincore(memory.baseAddress!, memory.count, states.baseAddress!) == 0 else { return true }
            for index in 0..<pageCount where unsafe states[index] & 1 == 0 { return false }
            return true
        }
    }

    /// MADV_POPULATE_READ, since Linux 5.14: reads pages, and reports what SIGBUS would.
    private static let populate: Int32 = 22

    /// Reads these bytes of a map into memory. Waits for the disk.
    /// - Returns: the error number, 0 if they were read.
    static func read(_ bytes: UnsafeRawBufferPointer) -> Int32 {
        if bytes.count == 0 { return 0 }
        let memory = unsafe fromPageStart(bytes)
        // All of them are asked for before the first is waited for.
        _ = unsafe madvise(memory.baseAddress!, memory.count, MADV_WILLNEED)
        while unsafe madvise(memory.baseAddress!, memory.count, populate) != 0 {
            switch errno {
            case EINTR: continue
            case EINVAL, EAGAIN:
                // An older system, or one that lacks memory. A page that cannot be read becomes zeros, which the
                // checksum finds.
                unsafe touch(bytes)
                return 0
            default: return errno == EFAULT ? EIO : errno
            }
        }
        return 0
    }

    // MARK: Reading what reads wait for

    /// Reads a place and verifies it. Waits for the disk.
    /// - Throws: `corrupt` if it cannot be read or is damaged.
    func fetch(_ place: ColdPlace) throws(StorageError) {
        switch place {
        case .ahead(let range): adviseWillNeed(range.clamped(to: 0..<byteCount))
        case .block(let offset, let bit):
            if isWarm(bit) { return }
            try read(place)
            try warmBlock(at: offset, bit, .wait)
        case .pages(let numbers):
            guard let shift = documents?.map.pageShift else { return }
            try read(place)
            for page in numbers { try warmBlock(at: page << shift, page, .wait) }
        case .hashPage(let page):
            let bit = hashBit(ofPage: page)
            if isWarm(bit) { return }
            try read(place)
            try warm(hashPage: page, bit, .wait)
        case .records(let page):
            guard let documents else { return }
            try read(place)
            try warmRecords(page, documents, .wait)
        }
    }

    private func read(_ place: ColdPlace) throws(StorageError) {
        let status = unsafe Self.read(bytes(of: place))
        let restStatus = status == 0 ? unsafe rest(of: place).map { unsafe Self.read($0) } ?? 0 : status
        if restStatus == 0 { return }
        let reason = unsafe String(cString: strerror(restStatus))
        throw StorageError(.corrupt, "a page of a run cannot be read: \(reason)", file: path(of: place))
    }

    // MARK: Pages that the kernel dropped

    /// Takes away the marks of places that are not in memory any more.
    func sweep() {
        unsafe forEachDropped(in: base, byteCount: byteCount) { clearData(at: $0) }
        if unsafe indexBase != base {
            unsafe forEachDropped(in: indexBase, byteCount: indexByteCount) { clearIndex(at: $0) }
        }
    }

    private static let sweptBytes = 1 << 20

    /// Calls `body` with the offset of each page of a map that is not in memory.
    private func forEachDropped(in start: UnsafeRawPointer, byteCount: Int, _ body: (Int) -> Void) {
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.sweptBytes / Self.pageBytes) { states in
            for offset in stride(from: 0, to: byteCount, by: Self.sweptBytes) {
                let count = min(Self.sweptBytes, byteCount - offset)
                let chunk = unsafe UnsafeMutableRawPointer(mutating: start + offset)
                guard unsafe mincore(chunk, count, states.baseAddress!) == 0 else { return }
                for page in 0..<(count + Self.pageBytes - 1) / Self.pageBytes where unsafe states[page] & 1 == 0 {
                    body(offset + page * Self.pageBytes)
                }
            }
        }
    }

    /// Clears the marks of what lies in a page of the file with the data.
    private func clearData(at offset: Int) {
        if let documents { return clear(offset >> documents.map.pageShift) }
        if unsafe base + offset + Self.pageBytes > table { return clearIndex(at: offset) }
        // A block begins anywhere, and is a little longer than `blockBytes`. Index blocks are among the last ones.
        let bit = offset / RunFormat.blockBytes
        for near in max(0, bit - 2)...bit + 1 { clear(near) }
        if offset + Self.pageBytes > indexBlocksStart {
            for block in dataBlockCount..<blockCount { clear(dataBits + block - dataBlockCount) }
        }
    }

    /// Clears the marks of what lies in a page of the file with the index.
    private func clearIndex(at offset: Int) {
        let hashStart = unsafe hashIndex - indexBase
        clearPages(hashBit(ofPage: 0), count: hashPageCount, from: hashStart, page: offset)
        guard let documents else { return }
        let recordsStart = unsafe documents.recordsStart - indexBase
        clearPages(recordsBit(0), count: documents.recordsPageCount, from: recordsStart, page: offset)
    }

    /// Clears the marks of checksummed pages, the first of which begins at `start`, that lie in a page of the system.
    private func clearPages(_ bit: Int, count: Int, from start: Int, page offset: Int) {
        let place = (offset - start) / Self.pageBytes
        for near in place - 1...place + 1 where near >= 0 && near < count { clear(bit + near) }
    }

    private func clear(_ bit: Int) {
        unsafe (warm + bit / 64).pointee.bitwiseAnd(~Self.mask(bit), ordering: .relaxed)
    }
}
