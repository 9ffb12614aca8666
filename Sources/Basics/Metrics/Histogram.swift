/// The distribution of values in powers of two: one bucket for each number of bits.
///
///     bucket   0   1   2     3     4      ...  k
///     values   0   1   2-3   4-7   8-15        2^(k-1) ... 2^k - 1
///
/// One thread at a time records; any thread reads. Recording does not allocate or lock.
@usableFromInline package struct Histogram: ~Copyable, Sendable {
    /// Values of 2^46 and more (19 hours in nanoseconds) share the last.
    package static let bucketCount = 48

    @usableFromInline let buckets = InlineArray<48, Counter> { _ in Counter() }
    @usableFromInline let sum = Counter()

    @inlinable
    package init() {}

    /// Records a value, or the same value so many times.
    @inlinable @inline(__always)
    package func record(_ value: UInt64, times: UInt64 = 1) {
        buckets[min(64 &- value.leadingZeroBitCount, 47)].add(times)
        sum.add(value &* times)
    }

    /// What is in it now.
    package var reading: HistogramReading {
        var reading = HistogramReading()
        for index in 0..<Self.bucketCount { reading.counts[index] = buckets[index].value }
        reading.sum = sum.value
        return reading
    }
}

/// What was in a histogram at one moment; values were taken one by one.
package struct HistogramReading: Sendable, Equatable {
    /// Values by bucket.
    package var counts = [UInt64](repeating: 0, count: Histogram.bucketCount)
    package var sum: UInt64 = 0

    package init() {}

    package var count: UInt64 { counts.reduce(0, &+) }

    /// The largest value of a bucket but the last.
    package static func upperBound(_ bucket: Int) -> UInt64 { (1 << UInt64(bucket)) &- 1 }

    package mutating func add(_ other: HistogramReading) {
        for index in counts.indices { counts[index] &+= other.counts[index] }
        sum &+= other.sum
    }
}
