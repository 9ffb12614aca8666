import Glibc

/// Standard error of the commands. Thread-safe.
enum StandardError {
    /// Writes a text with one system call, so that lines of several threads do not mix. A failure cannot be reported.
    static func write(_ text: String) {
        var text = text
        text.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
