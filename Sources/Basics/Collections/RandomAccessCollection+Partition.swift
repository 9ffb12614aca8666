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

extension Array where Element: Comparable {
    /// Adds an element to a sorted array without equal elements, or takes it out. Nothing happens if it is so already.
    package mutating func note(_ element: Element, isMember: Bool) {
        let place = partitioningIndex { $0 >= element }
        let wasMember = place < count && self[place] == element
        if isMember, !wasMember { insert(element, at: place) }
        if !isMember, wasMember { remove(at: place) }
    }
}
