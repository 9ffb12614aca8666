// The tree's file in memory, beside LMDB's own map of it, and which of its pages have been checked.
//
// A page is checked when it is first used, and then trusted until LMDB writes it again. LMDB writes only to
// pages that are free in the state before. So after each commit the free pages are marked, and a mark ends what was
// known of a page.
//
// One word a page, which only grows:
//
//      transaction, then 6 bits   checked by a reader of that transaction, as a page of this kind (`PageMark`)
//      transaction, then zeros    free before that transaction, which may have written it
//
// A reader of an older state that still uses a page which has become free cannot undo the mark: its transaction is
// lower.

internal import Glibc
internal import Synchronization

/// As what a page has been checked: a database and a part of it, in 6 bits, not zero.
struct PageMark: Equatable {
    static let bits = 6

    enum Part: UInt64 {
        case branch = 1
        /// A leaf whose sums have not been checked. Lower than `leaf`: a word only grows.
        case leafForm
        case leaf
        case overflow
    }

    let code: UInt64

    @inline(__always)
    init(_ kind: PageKind, _ part: Part) { code = kind.rawValue << 3 | part.rawValue }
}

/// The map of a tree's file. Freed with the last reference; `Tree` keeps one as long as transactions may be open.
@safe
final class PageMap: @unchecked Sendable {  // The file and the words are for all threads; the rest never changes.
    let file: File
    let pageBytes: Int
    let base: UnsafeRawPointer
    let mapBytes: Int
    fileprivate let marks: UnsafeMutablePointer<Atomic<UInt64>>
    private let markBytes: Int
    private let faultSlot: Int?
    /// The size of the file when it was last looked at; it only grows.
    private let fileBytes: Atomic<Int>

    init(_ file: File, pageBytes: Int, mapBytesMax: Int) throws(StorageError) {
        self.file = file
        self.pageBytes = pageBytes
        let size = try file.byteCount()
        fileBytes = Atomic(size)
        mapBytes = (max(mapBytesMax, size) + pageBytes - 1) & ~(pageBytes - 1)
        markBytes = (mapBytes / pageBytes * 8 + 4095) & ~4095
        unsafe base = UnsafeRawPointer(try file.map(byteCount: mapBytes))
        let memory = unsafe mmap(
            nil, markBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        guard let memory = unsafe memory, unsafe memory != MAP_FAILED else {
            let status = errno
            unsafe munmap(UnsafeMutableRawPointer(mutating: base), mapBytes)
            throw .system(status, "cannot reserve \(markBytes) bytes of address space", file: file.path)
        }
        // Zeros are atomics that hold zero.
        unsafe marks = memory.bindMemory(to: Atomic<UInt64>.self, capacity: markBytes / 8)
        faultSlot = unsafe MapFaults.add(base, byteCount: mapBytes, file: file.path, words: nil)
    }

    deinit {
        MapFaults.remove(faultSlot)
        unsafe munmap(UnsafeMutableRawPointer(mutating: base), mapBytes)
        unsafe munmap(marks, markBytes)
    }

    /// The addresses of the map, without a reference to count.
    var pages: TreePages { TreePages(self) }

    /// Whether the file reaches to `end`.
    fileprivate func reaches(_ end: Int) throws(StorageError) -> Bool {
        if end <= fileBytes.load(ordering: .relaxed) { return true }
        let size = try file.byteCount()
        fileBytes.store(size, ordering: .relaxed)
        return end <= size
    }
}

/// A map's addresses. Valid as long as the map.
@safe
struct TreePages {
    private let base: UnsafeRawPointer
    private let marks: UnsafeMutablePointer<Atomic<UInt64>>
    private let shift: Int
    private let map: Unmanaged<PageMap>

    fileprivate init(_ map: PageMap) {
        unsafe base = map.base
        unsafe marks = map.marks
        shift = map.pageBytes.trailingZeroBitCount
        unsafe self.map = Unmanaged.passUnretained(map)
    }

    var pageBytes: Int { 1 << shift }

    @inline(__always)
    subscript(number: UInt64) -> TreePage {
        unsafe TreePage(start: base + Int(truncatingIfNeeded: number) << shift)
    }

    /// Whether a page, which is in the map, has been checked as what it is taken for since it was written.
    @inline(__always)
    func isChecked(_ number: UInt64, as mark: PageMark) -> Bool {
        let word = unsafe marks[Int(truncatingIfNeeded: number)].load(ordering: .relaxed)
        return word & (1 << UInt64(PageMark.bits) - 1) == mark.code
    }

    /// Remembers that a page has been checked in the state of a transaction.
    func noteChecked(_ number: UInt64, as code: PageMark, in transaction: UInt64) {
        let mark = unsafe marks + Int(truncatingIfNeeded: number)
        let old = unsafe mark.pointee.load(ordering: .relaxed)
        let new = transaction << UInt64(PageMark.bits) | code.code
        if old < new { _ = unsafe mark.pointee.compareExchange(expected: old, desired: new, ordering: .relaxed) }
    }

    /// Marks a page that is free in the state of a transaction: the next one may write it.
    func noteFree(_ number: UInt64, in transaction: UInt64) {
        unsafe marks[Int(truncatingIfNeeded: number)].store(
            (transaction + 1) << UInt64(PageMark.bits), ordering: .relaxed)
    }

    /// Whether a page is marked as free in the state of a transaction.
    func isFree(_ number: UInt64, in transaction: UInt64) -> Bool {
        unsafe marks[Int(truncatingIfNeeded: number)].load(ordering: .relaxed) == (transaction + 1)
            << UInt64(PageMark.bits)
    }

    /// Makes sure that the file has all of some pages: beyond its end, memory cannot be read.
    func checkPresence(_ number: UInt64, count: Int) throws(StorageError) {
        let end = (Int(truncatingIfNeeded: number) + count) << shift
        if unsafe try !map.takeUnretainedValue().reaches(end) {
            throw damaged(number, "lies beyond the end of the file")
        }
    }

    /// The error that names a page.
    func damaged(_ number: UInt64, _ what: String) -> StorageError {
        let path = unsafe map.takeUnretainedValue().file.path
        let offset = number < UInt64(Int.max >> shift) ? Int(number) << shift : nil
        return StorageError(.corrupt, "page \(number) of the tree \(what)", file: path, offset: offset)
    }
}
