extension RandomAccessCollection {
    /// The first index whose element passes a test that all elements after it pass too; `endIndex` if none does.
    ///
    /// Takes as many tests as the logarithm of the count.
    @inlinable
    package func partitioningIndex(where isAfter: (Element) -> Bool) -> Index {
        var (low, count) = (startIndex, self.count)
        while count > 0 {
            let half = count / 2
            let middle = index(low, offsetBy: half)
            if isAfter(self[middle]) {
                count = half
            } else {
                low = index(after: middle)
                count -= half + 1
            }
        }
        return low
    }
}
