import Basics
import DocumentModel

extension RequestError {
    /// - Parameter problem: what is wrong, as a part of a sentence.
    static func damagedBundle(_ problem: String) -> RequestError {
        RequestError(.dataLoss, "The bundle is damaged: \(problem).")
    }
}

/// Splits a bundle into its elements.
///
///     138{"metadata":{...}}94{"namedQuery":{...}}77{"documentMetadata":{...}}203{"document":{...}}
///     └┬┘└─── JSON ───────┘
///      bytes of the JSON text, in decimal
struct BundleReader: ~Copyable {
    /// Bytes of one element: a document has at most 1 MiB, and its JSON text may be several times as long.
    static let elementBytesMax = 16 << 20
    /// Bytes of a bundle: it is in memory until it is applied.
    static let bundleBytesMax = 256 << 20
    private static let chunkByteCount = 64 << 10
    private static let prefixDigitsMax = 10

    private let source: any ByteSource
    /// Bytes that were read and not taken yet, from `position` on.
    private var buffer: [UInt8] = []
    private var position = 0
    private var isAtEnd = false
    /// Bytes of all elements so far with their prefixes.
    private(set) var byteCount = 0

    init(_ source: any ByteSource) { self.source = source }

    /// The JSON text of the next element; nil at the end of the bundle.
    ///
    /// - Throws: DATA_LOSS if the bundle is damaged, RESOURCE_EXHAUSTED if it is too large.
    mutating func next() throws(RequestError) -> [UInt8]? {
        var length = 0
        var digits = 0
        while let byte = try peek() {
            if byte == UInt8(ascii: "{"), digits > 0 { return try element(length, prefix: digits) }
            guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte, digits < Self.prefixDigitsMax else {
                throw .damagedBundle("byte \(byteCount + digits) belongs to no length prefix")
            }
            length = length * 10 + Int(byte - UInt8(ascii: "0"))
            digits += 1
            position += 1
        }
        if digits > 0 { throw Self.truncated }
        return nil
    }

    private mutating func element(_ length: Int, prefix: Int) throws(RequestError) -> [UInt8] {
        guard length <= Self.elementBytesMax, byteCount + length <= Self.bundleBytesMax else {
            throw RequestError(
                .resourceExhausted,
                "The bundle is too large: an element may have \(Self.elementBytesMax) bytes, the bundle "
                    + "\(Self.bundleBytesMax).")
        }
        while buffer.count - position < length { if try !fill() { throw Self.truncated } }
        byteCount += prefix + length
        defer { position += length }
        return Array(buffer[position..<position + length])
    }

    private mutating func peek() throws(RequestError) -> UInt8? {
        if position == buffer.count, try !fill() { return nil }
        return buffer[position]
    }

    /// Reads more.
    ///
    /// - Returns: false at the end.
    private mutating func fill() throws(RequestError) -> Bool {
        if isAtEnd { return false }
        buffer.removeFirst(position)
        position = 0
        let more = try source.read(Self.chunkByteCount)
        isAtEnd = more.isEmpty
        buffer += more
        return !isAtEnd
    }

    private static var truncated: RequestError { RequestError(.dataLoss, "The bundle ends inside an element.") }
}
