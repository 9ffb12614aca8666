// How an engine shows an entry to a cursor that may be of either engine.

/// The entry that a cursor moved to; valid until its next step.
@unsafe
@usableFromInline package struct CursorEntry {
    @usableFromInline package var key: UnsafeRawBufferPointer
    @usableFromInline package var value: UnsafeRawBufferPointer
    @usableFromInline package var version: UInt64

    @inlinable
    package init(key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, version: UInt64) {
        unsafe self.key = key
        unsafe self.value = value
        unsafe self.version = version
    }

    /// No entry.
    @inlinable
    package static var none: CursorEntry {
        let nothing = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
        return unsafe CursorEntry(key: nothing, value: nothing, version: 0)
    }
}
