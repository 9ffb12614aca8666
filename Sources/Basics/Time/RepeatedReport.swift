/// When a failure that is met again and again is reported: at once if it is another one than the last that was
/// reported, and else once a minute.
package struct RepeatedReport: Sendable {
    private var last: (text: String, milliseconds: UInt64)?

    package static let pauseMilliseconds: UInt64 = 60_000

    package init() {}

    /// Notes a failure.
    ///
    /// - Parameter milliseconds: now, of a clock that does not go back.
    /// - Returns: whether it is to be reported.
    package mutating func isDue(_ text: String, at milliseconds: UInt64) -> Bool {
        if let last, last.text == text, milliseconds < last.milliseconds + Self.pauseMilliseconds { return false }
        last = (text, milliseconds)
        return true
    }
}
