/// State of one thread, without Swift's run-time check for exclusive access: a box for properties on hot paths.
///
/// Swift checks each access to a class's `var` while the program runs; at twenty accesses a call that is a third of the
/// price of a small call. The state in this box is not checked. The owner guarantees what the check would find: one
/// thread uses the box, and code that runs during a change of a part does not access the same part.
@safe @usableFromInline package struct Confined<State: ~Copyable>: ~Copyable {
    // Owner: this box, which frees it in `deinit`. One initialised `State`, always.
    @usableFromInline let pointer: UnsafeMutablePointer<State>

    @inlinable
    package init(_ state: consuming State) {
        unsafe pointer = .allocate(capacity: 1)
        unsafe pointer.initialize(to: state)
    }

    @inlinable
    deinit {
        unsafe pointer.deinitialize(count: 1)
        unsafe pointer.deallocate()
    }

    @inlinable
    package var state: State {
        @inline(__always) _read { yield unsafe pointer.pointee }
        @inline(__always) nonmutating _modify { yield unsafe &pointer.pointee }
    }
}
