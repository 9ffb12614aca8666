/// Bounds of the ranges that cursors read.
package enum RangeBound {
    /// A copy of a bound; nil leaves the end open.
    /// - Throws: `keyTooLong`.
    package static func copy(_ bound: RawSpan?) throws(StorageError) -> [UInt8]? {
        guard let bound else { return nil }
        guard bound.byteCount <= EngineLimits.keyBytesMax else {
            throw StorageError(.keyTooLong, "a bound of a range has at most \(EngineLimits.keyBytesMax) bytes")
        }
        return unsafe bound.withUnsafeBytes { unsafe Array($0) }
    }
}
