internal import CLinux
internal import Glibc

/// The memory of this process, as the kernel and the allocator count it.
struct ProcessMemory: Equatable {
    /// Resident bytes, mapped files included.
    var resident = 0
    /// Resident bytes that no file has.
    var anonymous = 0
    /// Bytes that are allocated and not freed.
    var heapUsed = 0
    /// Freed bytes that the allocator keeps; the kernel may have taken their pages back already.
    var heapFree = 0

    /// What it is now. It takes the locks of all heaps in turn, for some microseconds each.
    static var current: ProcessMemory {
        var memory = ProcessMemory()
        let pageBytes = sysconf(Int32(_SC_PAGESIZE))
        let pages = residentPages()
        memory.resident = pages.all * pageBytes
        memory.anonymous = (pages.all - pages.ofFiles) * pageBytes
        let heap = mallinfo2()
        memory.heapUsed = Int(heap.uordblks) + Int(heap.hblkhd)
        memory.heapFree = Int(heap.fordblks)
        return memory
    }

    /// The second and third number of /proc/self/statm; zeros where there is no such file.
    private static func residentPages() -> (all: Int, ofFiles: Int) {
        guard let file = fopen("/proc/self/statm", "r") else { return (0, 0) }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        guard fgets(&line, Int32(line.count), file) != nil else { return (0, 0) }
        let numbers = line.prefix { $0 != 0 }.split(separator: CChar(UInt8(ascii: " "))).map { text in
            Int(String(decoding: text.map { UInt8(bitPattern: $0) }, as: UTF8.self)) ?? 0
        }
        return numbers.count > 2 ? (numbers[1], numbers[2]) : (0, 0)
    }
}

/// When freed memory is given back to the kernel: some seconds after a burst, once the memory rests. Asked once a
/// second.
///
/// After memory was given back, what counts is how much was freed since, or how much the kernel had to give again.
struct TrimSchedule {
    /// Less is not worth the locks of the heaps.
    static let bytesMin = 8 << 20
    /// Between two trims.
    static let pauseSeconds = 10
    /// Anonymous memory that grows by more in a second does not rest.
    static let restBytes = 1 << 20

    // Zero: nothing was given back before.
    private var anonymousLowest = 0
    private var freeLowest = 0
    private var anonymousBefore = 0
    private var secondsSinceTrim = pauseSeconds

    /// - Parameter memory: as it is now.
    mutating func isDue(_ memory: ProcessMemory) -> Bool {
        secondsSinceTrim += 1
        anonymousLowest = min(anonymousLowest, memory.anonymous)
        freeLowest = min(freeLowest, memory.heapFree)
        let rests = memory.anonymous <= anonymousBefore + Self.restBytes
        anonymousBefore = memory.anonymous
        let releasableBytes = max(memory.anonymous - anonymousLowest, memory.heapFree - freeLowest)
        guard rests, memory.heapFree >= Self.bytesMin, releasableBytes >= Self.bytesMin,
            secondsSinceTrim >= Self.pauseSeconds
        else { return false }
        secondsSinceTrim = 0
        anonymousLowest = .max
        // As before the trim: what is freed while it runs counts for the next one.
        freeLowest = memory.heapFree
        return true
    }
}
