// The line that shows the progress of a load or an export.

import Foundation

/// Prints progress on standard error: one line that is rewritten on a terminal, a line every five seconds elsewhere.
struct ProgressLine {
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant
    private var lastPrint: ContinuousClock.Instant
    private let isTerminal = isatty(STDERR_FILENO) == 1
    /// Nothing is printed.
    let isQuiet: Bool

    init(isQuiet: Bool = false) {
        start = clock.now
        lastPrint = start
        self.isQuiet = isQuiet
    }

    /// Seconds since the beginning.
    var seconds: Double {
        let elapsed = (clock.now - start).components
        return Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18
    }

    /// Shows the state if it is time to.
    ///
    /// - Parameters:
    ///   - done: documents so far.
    ///   - bytes: bytes of the input (or output) so far.
    ///   - totalBytes: bytes in all, where that is known.
    mutating func update(documents: Int, bytes: Int, totalBytes: Int?) {
        guard !isQuiet, clock.now - lastPrint > (isTerminal ? .milliseconds(200) : .seconds(5)) else { return }
        lastPrint = clock.now
        show(Self.text(documents: documents, bytes: bytes, totalBytes: totalBytes, seconds: seconds))
    }

    /// Clears the rewritten line, so that other text can follow.
    func clear() {
        if !isQuiet, isTerminal { write("\r\u{1B}[K") }
    }

    static func text(documents: Int, bytes: Int, totalBytes: Int?, seconds: Double) -> String {
        var parts = ["\(grouped(documents)) documents"]
        if let totalBytes, totalBytes > 0 {
            parts.append(String(format: "%.1f %%", Double(bytes) * 100 / Double(totalBytes)))
        }
        if seconds > 0 {
            parts.append("\(grouped(Int(Double(documents) / seconds))) documents/s")
            parts.append(String(format: "%.1f MB/s", Double(bytes) / seconds / 1e6))
        }
        return parts.joined(separator: ", ")
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

    private func show(_ text: String) { write(isTerminal ? "\r\u{1B}[K\(text)" : "\(text)\n") }

    private func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}
