import Basics
import Foundation

/// Where the bytes of a file come from that a program hands over. Belongs to one thread at a time.
protocol ByteSource: AnyObject, Sendable {
    /// At most `byteCountMax` bytes, as many as there are at once; none at the end.
    func read(_ byteCountMax: Int) throws(RequestError) -> [UInt8]
}

/// A file in memory.
final class DataSource: ByteSource, @unchecked Sendable {
    // Unchecked: one thread at a time reads it.
    private let data: Data
    private var position = 0

    init(_ data: Data) { self.data = data }

    func read(_ byteCountMax: Int) -> [UInt8] {
        let end = min(data.count, position + byteCountMax)
        defer { position = end }
        return [UInt8](data[data.startIndex + position..<data.startIndex + end])
    }
}

/// A stream, which is opened at the first read and closed at the end.
final class StreamSource: ByteSource, @unchecked Sendable {
    // Unchecked: one thread at a time reads it, and the program has given the stream away.
    private let stream: InputStream
    private var isOpen = false

    init(_ stream: InputStream) { self.stream = stream }

    deinit { if isOpen { stream.close() } }

    func read(_ byteCountMax: Int) throws(RequestError) -> [UInt8] {
        if !isOpen {
            stream.open()
            isOpen = true
        }
        var bytes = [UInt8](repeating: 0, count: byteCountMax)
        let count = stream.read(&bytes, maxLength: byteCountMax)
        guard count >= 0 else {
            let reason = stream.streamError?.localizedDescription ?? "unknown reason"
            throw RequestError(.dataLoss, "The stream cannot be read: \(reason)")
        }
        bytes.removeLast(byteCountMax - count)
        return bytes
    }
}
