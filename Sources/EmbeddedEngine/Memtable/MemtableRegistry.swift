internal import Basics
internal import Synchronization

/// The memtables and the runs to look through, newest first.
@safe
struct MemtableView {
    let generation: UInt64
    let active: Memtable
    let frozen: Memtable?
    let runs: RunSetView
    /// Each view holds its set.
    fileprivate let set: Unmanaged<RunSet>

    fileprivate init(generation: UInt64, active: Memtable, frozen: Memtable?, _ set: RunSet) {
        self.generation = generation
        self.active = active
        self.frozen = frozen
        runs = set.view
        unsafe self.set = Unmanaged.passRetained(set)
    }
}

/// A reader's announcement. Belongs to one thread at a time; the registry reads it from another.
@safe
struct ReaderSlot: @unchecked Sendable {  // The slot is atomic; see `MemtableRegistry.enter`.
    fileprivate let generation: UnsafeMutablePointer<Atomic<UInt64>>
}

/// The memtables, the runs, their readers, and when their memory and files can be released.
///
/// At any time there is one view: the active memtable, possibly a frozen one that is being written to a run, and the
/// runs. Changing the view increments the generation. A reader announces the generation that it uses in a separate
/// slot. What only earlier views have is released when every slot is empty or has a later generation:
///
///     generation 4: active A                    reader 1: slot 4 ─── reads A ──────────────── slot 0
///     generation 5: active B, frozen A                      reader 2: slot 5 ─ reads B, A ─ slot 0
///     generation 6: active B                                                                  ▲ A can be released
///
/// Entering and leaving cost one store each, to a cache line of the reader. There is no reference count, because all
/// readers would then write to one cache line.
@safe
final class MemtableRegistry: @unchecked Sendable {  // Mutable state is atomic or in the monitor.
    @safe
    private struct Shared {
        var slots: [UnsafeMutablePointer<Atomic<UInt64>>] = unsafe []
        /// What only views before `generation` show.
        var retired: [(generation: UInt64, view: UnsafeMutablePointer<MemtableView>, memtable: Memtable?)] = unsafe []
        /// A memtable that nobody uses, with its memory, for the next one.
        var spare: Memtable?
        var keepsSpare = false
    }

    private let shared: Monitor<Shared>
    private let currentGeneration = Atomic<UInt64>(1)
    private let currentView: Atomic<UInt>

    init(active: Memtable, runs: RunSet) {
        shared = Monitor(Shared())
        let view = UnsafeMutablePointer<MemtableView>.allocate(capacity: 1)
        unsafe view.initialize(to: MemtableView(generation: 1, active: active, frozen: nil, runs))
        currentView = Atomic(UInt(bitPattern: view))
    }

    deinit {
        // No reader can be left: each holds the engine, and the engine this.
        let view = unsafe viewPointer(ordering: .acquiring)
        unsafe view.pointee.active.release()
        unsafe view.pointee.frozen?.release()
        unsafe view.pointee.set.release()
        unsafe view.deallocate()
        shared.withLock { shared in
            // The formatter would join `unsafe` and the name.
            // swift-format-ignore
            for unsafe item in unsafe shared.retired {
                unsafe item.memtable?.release()
                unsafe item.view.pointee.set.release()
                unsafe item.view.deallocate()
            }
            shared.spare?.release()
            // The formatter would join `unsafe` and the name.
            // swift-format-ignore
            for unsafe slot in unsafe shared.slots { unsafe slot.deallocate() }
        }
    }

    var generation: UInt64 {
        yieldPoint()
        return currentGeneration.load(ordering: .acquiring)
    }

    /// The current view, for the thread that may change it. Other threads must `enter` first.
    var viewForUpdate: MemtableView { unsafe viewPointer(ordering: .acquiring).pointee }

    private func viewPointer(ordering: AtomicLoadOrdering) -> UnsafeMutablePointer<MemtableView> {
        yieldPoint()
        let bits = currentView.load(ordering: .sequentiallyConsistent)
        return unsafe UnsafeMutablePointer(bitPattern: bits)!
    }
}

// MARK: - Readers

extension MemtableRegistry {
    func makeSlot() -> ReaderSlot {
        // A separate cache line, so that readers do not disturb each other.
        let memory = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 64)
        let slot = unsafe memory.bindMemory(to: Atomic<UInt64>.self, capacity: 1)
        unsafe slot.initialize(to: Atomic(0))
        shared.withLock { unsafe $0.slots.append(slot) }
        return unsafe ReaderSlot(generation: slot)
    }

    func removeSlot(_ slot: ReaderSlot) {
        shared.withLock { shared in
            unsafe shared.slots.removeAll { unsafe $0 == slot.generation }
        }
        unsafe slot.generation.deallocate()
    }

    /// Announces a reader and returns the view; its memtables and runs stay until `leave`.
    ///
    /// The announcement counts once the generation is seen unchanged after it: a changer that raises the generation
    /// later sees the slot when it looks for readers.
    func enter(_ slot: ReaderSlot) -> MemtableView {
        while true {
            let generation = generation
            yieldPoint()
            unsafe slot.generation.pointee.store(generation, ordering: .sequentiallyConsistent)
            yieldPoint()
            if currentGeneration.load(ordering: .sequentiallyConsistent) == generation { return viewForReading }
        }
    }

    /// The current view, for a reader that has entered and not left.
    var viewForReading: MemtableView { unsafe viewPointer(ordering: .sequentiallyConsistent).pointee }

    /// Whether a reader has entered through a slot and not left.
    func isInUse(_ slot: ReaderSlot) -> Bool {
        yieldPoint()
        return unsafe slot.generation.pointee.load(ordering: .sequentiallyConsistent) != 0
    }

    func leave(_ slot: ReaderSlot) {
        yieldPoint()
        unsafe slot.generation.pointee.store(0, ordering: .releasing)
    }
}

// MARK: - Updates, by one thread at a time

extension MemtableRegistry {
    /// Replaces the view. `retiring` is no longer part of it, and is released when no reader uses it.
    func show(active: Memtable, frozen: Memtable?, retiring: Memtable?, runs: RunSet) {
        let old = unsafe viewPointer(ordering: .acquiring)
        let generation = unsafe old.pointee.generation + 1
        let view = UnsafeMutablePointer<MemtableView>.allocate(capacity: 1)
        unsafe view.initialize(to: MemtableView(generation: generation, active: active, frozen: frozen, runs))
        shared.withLock { shared in
            yieldPoint()
            currentView.store(UInt(bitPattern: view), ordering: .sequentiallyConsistent)
            yieldPoint()
            currentGeneration.store(generation, ordering: .sequentiallyConsistent)
            unsafe shared.retired.append((generation, old, retiring))
        }
        reclaim()
    }

    /// Frees what nobody looks at any more; false if something is left.
    @discardableResult
    func reclaim() -> Bool {
        shared.withLock { shared in
            var oldestInUse = UInt64.max
            // The formatter would join `unsafe` and the name.
            // swift-format-ignore
            for unsafe slot in unsafe shared.slots {
                yieldPoint()
                let announced = unsafe slot.pointee.load(ordering: .sequentiallyConsistent)
                if announced != 0 { oldestInUse = min(oldestInUse, announced) }
            }
            var spare = shared.spare
            let keepsSpare = shared.keepsSpare
            unsafe shared.retired.removeAll { item in
                guard unsafe item.generation <= oldestInUse else { return false }
                if let memtable = unsafe item.memtable {
                    if keepsSpare, spare == nil { spare = memtable } else { memtable.release() }
                }
                unsafe item.view.pointee.set.release()
                unsafe item.view.deallocate()
                return true
            }
            shared.spare = spare
            return unsafe shared.retired.isEmpty
        }
    }

    /// Whether the memory of a memtable is kept for the next one. The kernel needs longer to clear fresh pages than the
    /// writer to fill them.
    func keepSpare(_ keepsSpare: Bool) {
        shared.withLock { shared in
            shared.keepsSpare = keepsSpare
            guard !keepsSpare else { return }
            shared.spare?.release()
            shared.spare = nil
        }
    }

    /// The memory that was kept, as an empty memtable.
    func takeSpare() -> Memtable? {
        let spare = shared.withLock { shared in
            let spare = shared.spare
            shared.spare = nil
            return spare
        }
        spare?.removeAll()
        return spare
    }
}
