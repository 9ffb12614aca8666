// Histograms of powers of two.

import Basics
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct HistogramTests {
    @Test func `A value falls into the bucket of its number of bits`() {
        let histogram = Histogram()
        for value in [0, 1, 2, 3, 4, 1_023, 1_024, UInt64.max] { histogram.record(value) }
        let reading = histogram.reading
        var expected: [Int: UInt64] = [0: 1, 1: 1, 2: 2, 3: 1, 10: 1, 11: 1, Histogram.bucketCount - 1: 1]
        for (bucket, count) in reading.counts.enumerated() {
            expectEqual(count, expected.removeValue(forKey: bucket) ?? 0, "bucket \(bucket)")
        }
        expectEqual(reading.count, 8)
        histogram.record(5, times: 3)
        expect(histogram.reading.counts[3] == 4 && histogram.reading.sum == reading.sum &+ 15)
        expectEqual(reading.sum, (0 + 1 + 2 + 3 + 4 + 1_023 + 1_024) &+ UInt64.max)
    }

    @Test func `Every value is at most the bound of its bucket and above that of the one before`() {
        for shift in 0..<46 {
            for value: UInt64 in [1 << UInt64(shift), (1 << UInt64(shift)) + 1, (2 << UInt64(shift)) - 1] {
                let histogram = Histogram()
                histogram.record(value)
                let counts = histogram.reading.counts
                let bucket = counts.firstIndex(of: 1) ?? 0
                expect(value <= HistogramReading.upperBound(bucket))
                expect(value > HistogramReading.upperBound(bucket - 1))
            }
        }
    }
}
