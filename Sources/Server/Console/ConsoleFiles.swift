// The files of the console: the page, its modules and its style sheet, which the target CConsole has in the binary.

internal import Basics
internal import CConsole
internal import HTTPProtocols

/// A file of the console.
struct ConsoleFile: Sendable {
    let contentType: String
    /// A strong entity tag (RFC 9110, section 8.8.3) of the contents.
    let tag: String
    let bytes: [UInt8]

    /// All files by their paths below `/console/`; the page itself has the empty path.
    static let all: [String: ConsoleFile] = {
        var count: Int32 = 0
        guard let files = unsafe hearth_console_files(&count) else { return [:] }
        var all: [String: ConsoleFile] = [:]
        for index in 0..<Int(count) {
            let file = unsafe files[index]
            let bytes = unsafe [UInt8](UnsafeBufferPointer(start: file.bytes, count: Int(file.count)))
            unsafe all[String(cString: file.path)] = ConsoleFile(
                contentType: String(cString: file.type), tag: tag(of: bytes), bytes: bytes)
        }
        return all
    }()

    /// FNV-1a with 64 bits: versions of one file have to differ, nobody chooses their contents.
    private static func tag(of bytes: [UInt8]) -> String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return "\"\(String(hash, radix: 16))\""
    }

    /// Whether a request's If-None-Match names the contents.
    ///
    /// - Parameter condition: the value of the field.
    func matches(_ condition: String) -> Bool {
        if condition == "*" { return true }
        return condition.split(separator: ",").contains { part in
            let text = part.drop { $0 == " " }
            let candidate = text.hasPrefix("W/") ? text.dropFirst(2) : text
            return candidate.prefix { $0 != " " } == tag
        }
    }
}
