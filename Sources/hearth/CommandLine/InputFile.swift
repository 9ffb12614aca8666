import Glibc

/// A small file that is read as a whole.
enum InputFile {
    /// Bytes of a file; the largest `firestore.indexes.json` that makes sense is far smaller.
    private static let bytesMax = 16 << 20

    /// The contents of a file; `nil` if it cannot be read.
    static func contents(of path: String) throws(CommandFailure) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(descriptor, &part, part.count)
            if count < 0, errno == EINTR { continue }
            if count < 0 { return nil }
            if count == 0 { return bytes }
            bytes += part[..<count]
            if bytes.count > bytesMax { throw CommandFailure("\(path) has more than \(bytesMax >> 20) MiB") }
        }
    }
}
