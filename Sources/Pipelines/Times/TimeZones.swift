// Time zones by their names.

internal import Glibc

/// Time zones: the system's, `UTC`, and fixed offsets such as `+05:30`. Confined to one thread.
struct TimeZones {
    private var kept: [String: ZoneFile] = [:]

    /// Zones that are kept; there are some 600 names.
    private static let keptMax = 1_000
    /// Bytes of a name.
    private static let nameBytesMax = 64
    private static let folder = "/usr/share/zoneinfo"

    /// The zone of a name; nil if there is none.
    mutating func zone(named name: String) -> ZoneFile? {
        if let zone = kept[name] { return zone }
        guard let zone = TimeZones.offset(name).map(ZoneFile.init(offset:)) ?? TimeZones.read(name) else { return nil }
        if kept.count >= TimeZones.keptMax { kept.removeAll() }
        kept[name] = zone
        return zone
    }

    /// The seconds of `UTC`, `Z`, `+hh` or `+hh:mm`; nil for other names.
    private static func offset(_ name: String) -> Int? {
        if name == "UTC" || name == "Z" { return 0 }
        guard let sign = name.utf8.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") else { return nil }
        let parts = name.dropFirst().split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count <= 2, parts.allSatisfy({ (1...2).contains($0.utf8.count) }) else { return nil }
        let numbers = parts.compactMap { UInt8($0) }
        guard numbers.count == parts.count, numbers[0] <= 14, numbers.count == 1 || numbers[1] < 60 else { return nil }
        let seconds = Int(numbers[0]) * 3600 + (numbers.count == 2 ? Int(numbers[1]) * 60 : 0)
        return sign == UInt8(ascii: "-") ? -seconds : seconds
    }

    /// The zone of a file of the system. A name is a path of words: it leads nowhere else.
    private static func read(_ name: String) -> ZoneFile? {
        guard name.utf8.count <= nameBytesMax else { return nil }
        let words = name.split(separator: "/", omittingEmptySubsequences: false)
        guard words.allSatisfy({ isWord($0) }), words[0] != "right", words[0] != "posix" else { return nil }
        return contents(of: "\(folder)/\(name)").flatMap { ZoneFile($0) }
    }

    /// The bytes of a file; nil if it cannot be read or is too large to be a zone.
    private static func contents(of path: String) -> [UInt8]? {
        let file = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: ZoneFile.bytesMax + 1)
        let count = Glibc.read(file, &bytes, bytes.count)
        return count > 0 && count < bytes.count ? Array(bytes.prefix(count)) : nil
    }

    private static func isWord(_ word: Substring) -> Bool {
        guard let first = word.utf8.first, isLetter(first) else { return false }
        return word.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || "_+-".utf8.contains($0) }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }
}
