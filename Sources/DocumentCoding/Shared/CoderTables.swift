// What a thread's coders keep between calls: tables of types, containers, sessions.

import Glibc
import Synchronization

/// One per thread that ever encoded or decoded; handed to another thread when its own ends, and never freed, so that a
/// container or coder that user code kept too long finds a closed frame and not freed memory.
@safe struct CoderTables {
    /// Where the tables of encoding lie; never freed.
    let encoding: UnsafeMutablePointer<EncodingTables>
    /// Where the tables of decoding lie; never freed.
    let decoding: UnsafeMutablePointer<DecodingTables>
    /// The next of the tables that no thread owns.
    var nextOrphan: UnsafeMutablePointer<CoderTables>?

    private init() {
        unsafe encoding = .allocate(capacity: 1)
        unsafe encoding.initialize(to: EncodingTables())
        unsafe decoding = .allocate(capacity: 1)
        unsafe decoding.initialize(to: DecodingTables())
    }

    /// Tables of threads that ended.
    private static let orphans = unsafe Mutex<Orphans>(Orphans(first: nil))

    @safe private struct Orphans: @unchecked Sendable {
        // Sendable because tables belong to the thread that took them off the list.
        var first: UnsafeMutablePointer<CoderTables>?
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = unsafe pthread_key_create(&key) { address in
            guard let tables = unsafe address?.assumingMemoryBound(to: CoderTables.self) else { return }
            CoderTables.orphans.withLock { orphans in
                unsafe tables.pointee.nextOrphan = orphans.first
                unsafe orphans.first = tables
            }
        }
        precondition(status == 0, "no thread-specific data left: pthread_key_create returned \(status)")
        return key
    }()

    /// The tables of the calling thread.
    static var ofThisThread: CoderTables {
        if let known = unsafe pthread_getspecific(key) {
            return unsafe known.assumingMemoryBound(to: CoderTables.self).pointee
        }
        let inherited = orphans.withLock { orphans in
            let taken = unsafe Orphans(first: orphans.first)
            unsafe orphans.first = unsafe orphans.first?.pointee.nextOrphan
            return taken
        }
        let tables: UnsafeMutablePointer<CoderTables>
        if let first = unsafe inherited.first {
            unsafe tables = unsafe first
        } else {
            unsafe tables = .allocate(capacity: 1)
            unsafe tables.initialize(to: CoderTables())
        }
        unsafe pthread_setspecific(key, tables)
        return unsafe tables.pointee
    }
}
