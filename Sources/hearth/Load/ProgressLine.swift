// The line that shows the progress of a command.

import Glibc
import Storage

/// Prints progress on standard error: one line that is rewritten on a terminal, lines at intervals elsewhere.
struct ProgressLine {
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant
    private var lastPrint: ContinuousClock.Instant
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let interval: Duration
    /// Nothing is printed.
    let isQuiet: Bool

    /// The time between two changes of the line on a terminal, if the flag does not say a shorter one.
    private static let terminalInterval = Duration.milliseconds(200)

    /// - Parameter interval: the time between two lines, and before the first; on a terminal it may be shorter.
    init(isQuiet: Bool = false, interval: Duration = .seconds(5)) {
        start = clock.now
        lastPrint = start
        self.isQuiet = isQuiet
        self.interval = isTerminal ? min(interval, Self.terminalInterval) : interval
    }

    /// Seconds since the beginning.
    var seconds: Double {
        let elapsed = (clock.now - start).components
        return Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18
    }

    /// Shows the state of a load or an export if it is time to.
    ///
    /// - Parameters:
    ///   - done: documents so far.
    ///   - bytes: bytes of the input (or output) so far.
    ///   - totalBytes: bytes in all, where that is known.
    mutating func update(documents: Int, bytes: Int, totalBytes: Int?) {
        guard isDue else { return }
        show(Self.text(documents: documents, bytes: bytes, totalBytes: totalBytes, seconds: seconds))
    }

    /// Shows how far work on a directory has come if it is time to.
    mutating func update(_ progress: WorkProgress) {
        guard isDue else { return }
        show(Self.text(progress))
    }

    /// Clears the rewritten line, so that other text can follow.
    func clear() {
        if !isQuiet, isTerminal { write("\r\u{1B}[K") }
    }

    static func text(documents: Int, bytes: Int, totalBytes: Int?, seconds: Double) -> String {
        var parts = ["\(grouped(documents)) documents"]
        if let totalBytes, totalBytes > 0 {
            parts.append("\(oneDecimal(Double(bytes) * 100 / Double(totalBytes))) %")
        }
        if seconds > 0 {
            parts.append("\(grouped(Int(Double(documents) / seconds))) documents/s")
            parts.append("\(oneDecimal(Double(bytes) / seconds / 1e6)) MB/s")
        }
        return parts.joined(separator: ", ")
    }

    static func text(_ progress: WorkProgress) -> String {
        let amount = Self.amount(progress.done, progress.unit)
        guard progress.total > 0 else { return "\(progress.stage): \(amount)" }
        // The total is about right: the store may have changed since it was counted.
        let share = min(Double(progress.done) * 100 / Double(progress.total), 100)
        let total = Self.amount(max(progress.total, progress.done), progress.unit)
        return "\(progress.stage): \(amount) of \(total), \(oneDecimal(share)) %"
    }

    private static func amount(_ number: Int, _ unit: WorkProgress.Unit) -> String {
        switch unit {
        case .bytes: "\(oneDecimal(Double(number) / 1e6)) MB"
        case .entries: "\(grouped(number)) entries"
        }
    }

    /// A number that is not negative, with one decimal: 12.345 as 12.3.
    private static func oneDecimal(_ number: Double) -> String {
        let tenths = Int((number * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// 1234567 as 1,234,567.
    static func grouped(_ number: Int) -> String {
        var digits = Array(String(number))
        var at = digits.count - 3
        while at > (number < 0 ? 1 : 0) {
            digits.insert(",", at: at)
            at -= 3
        }
        return String(digits)
    }

    /// A number with its noun: 1 document, 1,234 documents.
    static func grouped(_ number: Int, _ noun: String) -> String {
        "\(grouped(number)) \(noun)\(number == 1 ? "" : "s")"
    }

    private var isDue: Bool {
        mutating get {
            guard !isQuiet, clock.now - lastPrint >= interval else { return false }
            lastPrint = clock.now
            return true
        }
    }

    private func show(_ text: String) { write(isTerminal ? "\r\u{1B}[K\(text)" : "\(text)\n") }

    private func write(_ text: String) { StandardError.write(text) }
}
