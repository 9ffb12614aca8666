public import Glibc

/// Orders two byte strings as unsigned bytes, a prefix first: negative, zero or positive.
@inlinable @inline(__always)
package func compareBytes(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
    let common = min(left.count, right.count)
    if common > 0 {
        let order = unsafe memcmp(left.baseAddress!, right.baseAddress!, common)
        if order != 0 { return Int(order) }
    }
    return left.count - right.count
}
