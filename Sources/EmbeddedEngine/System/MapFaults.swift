// What happens when memory of a mapped file cannot be read, because the file was cut or its disk fails: SIGBUS.
//
// In a file of a run, the handler puts a page of zeros over the place, notes that a fault happened, and returns, so the
// process lives. The reader meets zeros. Before it uses what it has read, it looks whether the count of faults has
// changed; if so it verifies the block again, whose checksum does not fit, and reports damage
// (docs/decisions/0030-faults-of-maps.md). Signals of other places go to the handler that was installed
// before.

internal import Basics
internal import Glibc
internal import Synchronization

/// The maps among which a signal finds its file. Thread-safe.
enum MapFaults {
    private struct Slot: ~Copyable {
        let start = Atomic<UInt>(0)
        let end = Atomic<UInt>(0)
        /// The address of the line to write, which ends with a zero; 0 if the slot is free.
        let line = Atomic<UInt>(0)
        /// The address of words to clear at a fault, and their number.
        let words = Atomic<UInt>(0)
        let wordCount = Atomic<Int>(0)
        /// The thread that reads a map of a library (``LibraryFaults``); 0 if none does.
        let thread = Atomic<UInt>(0)
    }

    /// More than a process may have maps (`vm.max_map_count`).
    private static let slotCount = 1 << 16
    private static let pageBytes = max(sysconf(Int32(_SC_PAGESIZE)), 4096)
    /// Never freed: a signal may come at any time. Zeros are atomics that hold zero.
    nonisolated(unsafe) private static let slots: UnsafeMutablePointer<Slot>? = {
        let memory = unsafe mmap(
            nil, slotCount * MemoryLayout<Slot>.stride, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        guard let memory = unsafe memory, unsafe memory != MAP_FAILED else { return nil }
        return unsafe memory.bindMemory(to: Slot.self, capacity: slotCount)
    }()
    /// Slots from here on have never been used.
    private static let slotsUsed = Atomic<Int>(0)
    private static let freeSlots = Monitor<[Int]>([])
    private static let faults = Atomic<UInt64>(0)
    /// Signals that are being handled: a page may be zeros already, and the marks of it not yet cleared.
    private static let faultsInProgress = Atomic<Int>(0)

    /// Changes before and after a page of zeros appears in any map. A reader that finds the count from before
    /// (``settledCount``) has met none since then.
    @inline(__always)
    static var count: UInt64 { faults.load(ordering: .acquiring) }

    /// The count with which a reader begins, at a moment at which no signal is being handled.
    @inline(__always)
    static var settledCount: UInt64 {
        let found = count
        return faultsInProgress.load(ordering: .acquiring) == 0 ? found : countWhenSettled()
    }

    @inline(never)
    private static func countWhenSettled() -> UInt64 {
        while true {
            let found = count
            if faultsInProgress.load(ordering: .acquiring) == 0 { return found }
            sched_yield()
        }
    }

    /// Who handled the signals before: SIGBUS, SIGSEGV.
    nonisolated(unsafe) private static let previous: UnsafeMutablePointer<sigaction> = {
        let previous = UnsafeMutablePointer<sigaction>.allocate(capacity: 2)
        unsafe previous.initialize(repeating: sigaction(), count: 2)
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_sigaction = { signal, information, context in
            unsafe MapFaults.handle(signal, information, context)
        }
        action.sa_flags = SA_SIGINFO | SA_ONSTACK
        _ = unsafe slots
        _ = pageBytes
        unsafe sigaction(SIGBUS, &action, previous)
        unsafe sigaction(SIGSEGV, &action, previous + 1)
        return unsafe previous
    }()

    /// From now on a fault in these bytes is handled.
    /// - Parameter words: cleared at each fault, after the page of zeros has appeared. They must be valid until
    ///   `remove`.
    /// - Returns: the slot, for `remove`; nil if there is none left, and faults end the process.
    static func add(
        _ start: UnsafeRawPointer?, byteCount: Int, file: String, words: UnsafeMutableBufferPointer<Atomic<UInt64>>
    ) -> Int? {
        _ = unsafe previous
        let text =
            "hearth: memory of \(file) cannot be read: the file is damaged, or its disk fails. "
            + "Run `hearth check` on the data directory; if it finds damage, restore a backup.\n"
        guard let slots = unsafe slots, let line = unsafe strdup(text) else { return nil }
        let free = freeSlots.withLock { free -> Int? in
            if let index = free.popLast() { return index }
            let next = slotsUsed.load(ordering: .relaxed)
            guard next < slotCount else { return nil }
            slotsUsed.store(next + 1, ordering: .releasing)
            return next
        }
        guard let index = free else {
            unsafe Glibc.free(line)
            return nil
        }
        unsafe slots[index].line.store(UInt(bitPattern: line), ordering: .relaxed)
        unsafe slots[index].words.store(UInt(bitPattern: words.baseAddress), ordering: .relaxed)
        unsafe slots[index].wordCount.store(words.count, ordering: .relaxed)
        unsafe slots[index].end.store(UInt(bitPattern: start) + UInt(byteCount), ordering: .relaxed)
        unsafe slots[index].start.store(UInt(bitPattern: start), ordering: .sequentiallyConsistent)
        return index
    }

    /// The calling thread begins or ends to read a map whose place is not known. Its faults in memory that no slot
    /// has are handled as those of this slot, which has no bytes.
    @inline(__always)
    static func setReading(_ slot: Int?, _ isReading: Bool) {
        guard let slot, let slots = unsafe slots else { return }
        unsafe slots[slot].thread.store(isReading ? UInt(pthread_self()) : 0, ordering: .relaxed)
    }

    /// The map is about to go.
    static func remove(_ slot: Int?) {
        guard let slot, let slots = unsafe slots else { return }
        unsafe slots[slot].start.store(0, ordering: .sequentiallyConsistent)
        unsafe slots[slot].end.store(0, ordering: .sequentiallyConsistent)
        unsafe slots[slot].thread.store(0, ordering: .relaxed)
        let line = unsafe slots[slot].line.exchange(0, ordering: .sequentiallyConsistent)
        unsafe free(UnsafeMutableRawPointer(bitPattern: line))
        freeSlots.withLock { $0.append(slot) }
    }
}

// MARK: - In the signal handler

// These functions only call what may be called there.
extension MapFaults {
    private static func handle(
        _ signal: Int32, _ information: UnsafeMutablePointer<siginfo_t>?, _ context: UnsafeMutableRawPointer?
    ) {
        let address = unsafe UInt(bitPattern: information?.pointee._sifields._sigfault.si_addr)
        if let slots = unsafe slots,
            let index = unsafe slot(of: address, slots) ?? (signal == SIGBUS ? slotOfReadingThread(slots) : nil)
        {
            let saved = errno
            if unsafe signal == SIGBUS && recover(address, slots[index]) {
                errno = saved
                return
            }
            let bits = unsafe slots[index].line.load(ordering: .relaxed)
            if let line = unsafe UnsafePointer<CChar>(bitPattern: bits) {
                _ = unsafe write(STDERR_FILENO, line, strlen(line))
            }
        }
        unsafe callPreviousHandler(signal, information, context)
    }

    private static func slot(of address: UInt, _ slots: UnsafeMutablePointer<Slot>) -> Int? {
        for index in 0..<slotsUsed.load(ordering: .acquiring) {
            let start = unsafe slots[index].start.load(ordering: .acquiring)
            if start != 0, address >= start, unsafe address < slots[index].end.load(ordering: .relaxed) { return index }
        }
        return nil
    }

    private static func slotOfReadingThread(_ slots: UnsafeMutablePointer<Slot>) -> Int? {
        let thread = UInt(pthread_self())
        for index in 0..<slotsUsed.load(ordering: .acquiring) {
            if unsafe slots[index].thread.load(ordering: .relaxed) == thread { return index }
        }
        return nil
    }

    /// Puts zeros in place of the page, so that the read can continue.
    private static func recover(_ address: UInt, _ slot: borrowing Slot) -> Bool {
        let bits = slot.words.load(ordering: .relaxed)
        guard let words = unsafe UnsafeMutablePointer<Atomic<UInt64>>(bitPattern: bits),
            let page = unsafe UnsafeMutableRawPointer(bitPattern: address & ~(UInt(pageBytes) - 1))
        else { return false }
        faultsInProgress.add(1, ordering: .sequentiallyConsistent)
        defer { faultsInProgress.subtract(1, ordering: .sequentiallyConsistent) }
        faults.add(1, ordering: .sequentiallyConsistent)
        let mapped = unsafe mmap(page, pageBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
        guard unsafe mapped == page else { return false }
        for index in 0..<slot.wordCount.load(ordering: .relaxed) {
            unsafe words[index].store(0, ordering: .sequentiallyConsistent)
        }
        faults.add(1, ordering: .sequentiallyConsistent)
        return true
    }

    /// Calls who handled the signal before. If that was nobody, the instruction runs again and the process ends as
    /// usual.
    private static func callPreviousHandler(
        _ signal: Int32, _ information: UnsafeMutablePointer<siginfo_t>?, _ context: UnsafeMutableRawPointer?
    ) {
        let before = unsafe previous + (signal == SIGBUS ? 0 : 1)
        if unsafe before.pointee.sa_flags & SA_SIGINFO != 0 {
            if let handler = unsafe before.pointee.__sigaction_handler.sa_sigaction {
                return unsafe handler(signal, information, context)
            }
        } else if let handler = unsafe before.pointee.__sigaction_handler.sa_handler,
            unsafe UInt(bitPattern: unsafeBitCast(handler, to: Int.self)) > 1
        {
            return handler(signal)
        }
        unsafe sigaction(signal, before, nil)
    }
}
