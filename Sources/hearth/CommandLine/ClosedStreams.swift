import Glibc

/// The standard streams with which the process was started closed, as with `>&-` of a shell.
enum ClosedStreams {
    /// `O_PATH` of open(2), which the module Glibc does not have: nothing can be read or written.
    private static let pathAlone: Int32 = 0o10_000_000

    /// Opens each of them so that reading and writing fail, before any file is opened: the next one would get the
    /// number of the stream, and the lines of the log would be written into it.
    static func occupy() {
        for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(stream, F_GETFD) < 0 {
            // The lowest free number is that of the stream.
            guard open("/", pathAlone) == stream else { exit(1) }
        }
    }
}
