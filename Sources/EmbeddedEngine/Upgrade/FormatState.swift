internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage

/// What the file FORMAT of a data directory says.
package enum FormatState: Equatable, Sendable {
    /// The directory has this format.
    case format(Int)
    /// A process that replaced the files of one format by those of another one has ended before it was done.
    case changing(from: Int, to: Int)
    /// A build before the first release wrote the directory.
    case unreleased(Int)
    case unknown

    /// Names that formats may have: the format that this version writes, and those of many versions after it.
    private static let numbers = 1...999
    private static let byteCountMax = 256

    /// What FORMAT contains. Never change the line of a format.
    var line: String? {
        switch self {
        case .format(let number): "hearth store, format \(number)\n"
        case .changing(let from, let to): "hearth store, changing from format \(from) to \(to)\n"
        case .unreleased(let number): "hearth key-value store, format \(number)\n"
        case .unknown: nil
        }
    }

    init(line: String) {
        let words = line.split { $0 == " " || $0 == "," || $0 == "\n" }
        let numbers = words.compactMap { Int($0) }.filter(Self.numbers.contains)
        let candidates: [FormatState] =
            switch numbers.count {
            case 1: [.format(numbers[0]), .unreleased(numbers[0])]
            case 2: [.changing(from: numbers[0], to: numbers[1])]
            default: []
            }
        self = candidates.first { $0.line == line } ?? .unknown
    }

    /// Reads the file of an existing directory.
    /// - Throws: `inputOutput`.
    init(of directory: String) throws(StorageError) {
        let file = try File(DirectoryFormat.path(in: directory), flags: O_RDONLY)
        let buffer = HeapBuffer(capacity: Self.byteCountMax)
        let count = unsafe try file.read(into: buffer.all, at: 0)
        self.init(line: unsafe String(decoding: UnsafeRawBufferPointer(rebasing: buffer.all[..<count]), as: UTF8.self))
    }

    /// Makes this the state of a directory, durably: a rename replaces the file.
    func write(in directory: String) throws(StorageError) {
        try Directory.replaceFile(DirectoryFormat.path(in: directory), with: line ?? "")
    }

    /// Why a version that reads one format does not use the directory; nil if it may.
    func refusal(of directory: String, by current: Int) -> StorageError? {
        let text: String
        switch self {
        case .format(current): return nil
        case .format(let number) where number < current:
            text =
                "the data directory has format \(number), and this version uses format \(current): upgrade it with "
                + "hearth upgrade, or start hearth serve with --upgrade"
        case .format(let number):
            text =
                "the data directory has format \(number), which a newer version has written; this version uses "
                + "format \(current). The newer version returns to the former format with hearth upgrade --back, as "
                + "long as its upgrade is not confirmed"
        case .changing(let from, let to):
            text =
                "a change of the data directory from format \(from) to \(to) was interrupted: complete it with "
                + "hearth upgrade of the version that began it"
        case .unreleased(let number):
            text =
                "the data directory has the former format \(number), which this version does not read: export the "
                + "documents with the version that wrote it, and load them into a new directory"
        case .unknown: text = "the format of the data directory is unknown to this version"
        }
        return StorageError(.unsupportedFormat, text, file: DirectoryFormat.path(in: directory))
    }
}
