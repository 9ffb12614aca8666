@testable import hearth

/// Gives bytes in parts of a size, whatever is asked for.
final class InputParts: InputBytes {
    private var rest: ArraySlice<UInt8>
    private let size: Int

    init(_ bytes: [UInt8], _ size: Int) {
        rest = bytes[...]
        self.size = size
    }

    func read(into bytes: inout [UInt8], atMost count: Int) throws(CommandFailure) -> Bool {
        let part = rest.prefix(min(size, count))
        bytes += part
        rest.removeFirst(part.count)
        return !part.isEmpty
    }
}
