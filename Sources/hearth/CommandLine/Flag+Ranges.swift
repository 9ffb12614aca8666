// Sizes and times within bounds.

extension ByteCount: Comparable {
    static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }
}

extension Flag where Value == ByteCount {
    /// A size within a closed range.
    init(
        _ name: String, _ placeholder: String, default value: ByteCount, in range: ClosedRange<ByteCount>, help: String
    ) {
        self.init(name, placeholder, default: value, help: help) { size in
            range.contains(size) ? nil : "between \(range.lowerBound.flagText) and \(range.upperBound.flagText)"
        }
    }
}

extension TimeSpan: Comparable {
    static func < (left: TimeSpan, right: TimeSpan) -> Bool { left.milliseconds < right.milliseconds }
}

extension Flag where Value == TimeSpan {
    /// A time within a closed range.
    init(_ name: String, _ placeholder: String, default value: TimeSpan, in range: ClosedRange<TimeSpan>, help: String)
    {
        self.init(name, placeholder, default: value, help: help) { time in
            range.contains(time) ? nil : "between \(range.lowerBound.flagText) and \(range.upperBound.flagText)"
        }
    }
}
