// What wakes a thread that waits for descriptors.

internal import CLinux
internal import Glibc
internal import Synchronization

/// A descriptor that is readable after ``signal()``. Thread-safe.
final class WakeDescriptor: Sendable {
    let descriptor = eventfd(0, Int32(HEARTH_EVENT_FLAGS))
    private let isSignalled = Atomic(false)

    deinit { _ = Glibc.close(descriptor) }

    /// Wakes the thread. Any thread.
    func signal() {
        if isSignalled.exchange(true, ordering: .sequentiallyConsistent) { return }
        var one: UInt64 = 1
        _ = unsafe write(descriptor, &one, 8)
    }

    /// What is asked of the thread after this call wakes it again. Before the thread looks at what it was asked.
    func clear() {
        var count: UInt64 = 0
        _ = unsafe read(descriptor, &count, 8)
        isSignalled.store(false, ordering: .sequentiallyConsistent)
    }

    /// For poll(2).
    var interest: pollfd { pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0) }
}
