// The message of a process that ends because memory of a mapped file cannot be read: the last resort, after all checks.
//
// A page that the disk cannot read, or that the file no longer has, ends the process with SIGBUS; a damaged page that
// LMDB follows beyond its map, with SIGSEGV. The signal is passed to the handler that was installed before, so
// core dumps and backtraces stay as they are.

internal import Glibc
internal import Synchronization

/// The maps among which a signal finds its file. Thread-safe.
enum MapFaults {
    private struct Slot: ~Copyable {
        let start = Atomic<UInt>(0)
        let end = Atomic<UInt>(0)
        /// The address of the line to write, which ends with a zero.
        let line = Atomic<UInt>(0)
    }

    private static let slotCount = 4096
    /// Never freed: a signal may come at any time.
    nonisolated(unsafe) private static let slots: UnsafeMutablePointer<Slot> = {
        let slots = UnsafeMutablePointer<Slot>.allocate(capacity: slotCount)
        for index in 0..<slotCount { unsafe (slots + index).initialize(to: Slot()) }
        return unsafe slots
    }()

    /// Who handled the signals before.
    nonisolated(unsafe) private static let previous: UnsafeMutablePointer<sigaction> = {
        let previous = UnsafeMutablePointer<sigaction>.allocate(capacity: 2)
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_sigaction = { signal, information, _ in
            unsafe MapFaults.handle(signal, information)
        }
        action.sa_flags = SA_SIGINFO | SA_ONSTACK
        _ = unsafe slots
        unsafe sigaction(SIGBUS, &action, previous)
        unsafe sigaction(SIGSEGV, &action, previous + 1)
        return unsafe previous
    }()

    /// From now on a fault in these bytes is explained. Beyond `slotCount` maps, it is not.
    static func add(_ start: UnsafeRawPointer, byteCount: Int, file: String) {
        _ = unsafe previous
        let text =
            "hearth: memory of \(file) cannot be read: the file is damaged, or its disk fails. "
            + "Run `hearth check` on the data directory; if it finds damage, restore a backup.\n"
        guard let line = unsafe strdup(text) else { return }
        for index in 0..<slotCount {
            let claim = unsafe slots[index].line.compareExchange(
                expected: 0, desired: UInt(bitPattern: line), ordering: .sequentiallyConsistent)
            guard claim.exchanged else { continue }
            unsafe slots[index].end.store(UInt(bitPattern: start) + UInt(byteCount), ordering: .sequentiallyConsistent)
            unsafe slots[index].start.store(UInt(bitPattern: start), ordering: .sequentiallyConsistent)
            return
        }
        unsafe free(line)
    }

    /// The map that begins at `start` is about to go.
    static func remove(_ start: UnsafeRawPointer) {
        for index in 0..<slotCount where unsafe slots[index].start.load(ordering: .relaxed) == UInt(bitPattern: start) {
            unsafe slots[index].start.store(0, ordering: .sequentiallyConsistent)
            unsafe slots[index].end.store(0, ordering: .sequentiallyConsistent)
            let line = unsafe slots[index].line.exchange(0, ordering: .sequentiallyConsistent)
            unsafe free(UnsafeMutableRawPointer(bitPattern: line))
        }
    }

    /// Only calls what may be called in a signal handler.
    private static func handle(_ signal: Int32, _ information: UnsafeMutablePointer<siginfo_t>?) {
        let address = unsafe UInt(bitPattern: information?.pointee._sifields._sigfault.si_addr)
        for index in 0..<slotCount {
            let start = unsafe slots[index].start.load(ordering: .relaxed)
            let end = unsafe slots[index].end.load(ordering: .relaxed)
            guard start != 0, address >= start, address < end else { continue }
            let bits = unsafe slots[index].line.load(ordering: .relaxed)
            guard let line = unsafe UnsafePointer<CChar>(bitPattern: bits) else { continue }
            _ = unsafe write(STDERR_FILENO, line, strlen(line))
            break
        }
        // The instruction runs again, and this time the signal takes its usual way.
        unsafe sigaction(signal, previous + (signal == SIGBUS ? 0 : 1), nil)
    }
}
