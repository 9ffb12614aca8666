extension UnsafeMutablePointer {
    /// Moves the elements to a block with more room and frees this one.
    ///
    /// - Parameter count: how many elements this block has.
    mutating func grow(from count: Int, to capacity: Int) {
        let larger = UnsafeMutablePointer.allocate(capacity: capacity)
        unsafe larger.moveInitialize(from: self, count: count)
        unsafe deallocate()
        unsafe self = larger
    }
}
