// The kinds of value a flag can carry, and how each is read from text.

import Calls

/// A value that a flag or its environment variable spells as text.
protocol FlagValue: Sendable {
    /// Reads the text of a flag; the error says what would have been understood.
    static func parse(_ text: String) throws(FlagTextError) -> Self
    /// How the value is shown in help texts; parses back to the same value.
    var flagText: String { get }
}

/// Why the text of a flag was not understood, as a phrase that follows "must be".
struct FlagTextError: Error {
    let expected: String
}

extension String: FlagValue {
    static func parse(_ text: String) throws(FlagTextError) -> String {
        if text.isEmpty { throw FlagTextError(expected: "a non-empty text") }
        return text
    }

    var flagText: String { self }
}

extension Int: FlagValue {
    static func parse(_ text: String) throws(FlagTextError) -> Int {
        guard let value = Int(text) else { throw FlagTextError(expected: "a whole number") }
        return value
    }

    var flagText: String { String(self) }
}

/// A switch: `--flag` alone turns it on; `--flag=false` turns off what the environment turned on.
extension Bool: FlagValue {
    static func parse(_ text: String) throws(FlagTextError) -> Bool {
        switch text.lowercased() {
        case "1", "true", "yes", "on": return true
        case "0", "false", "no", "off": return false
        default: throw FlagTextError(expected: "true or false")
        }
    }

    var flagText: String { self ? "true" : "false" }
}

/// A number of bytes: `4096`, `512KiB`, `10MiB`, `64GiB`; units are powers of 1024.
struct ByteCount: FlagValue, Equatable {
    let bytes: Int

    static func mebibytes(_ count: Int) -> ByteCount { ByteCount(bytes: count << 20) }
    static func kibibytes(_ count: Int) -> ByteCount { ByteCount(bytes: count << 10) }

    private static let units: [(suffix: String, shift: Int)] = [
        ("tib", 40), ("gib", 30), ("mib", 20), ("kib", 10), ("t", 40), ("g", 30), ("m", 20), ("k", 10), ("b", 0),
    ]

    static func parse(_ text: String) throws(FlagTextError) -> ByteCount {
        let expectation = FlagTextError(expected: "a size such as 4096, 512KiB, 10MiB or 64GiB")
        let lowered = text.lowercased()
        let unit = units.first { lowered.hasSuffix($0.suffix) } ?? ("", 0)
        guard let count = Int(lowered.dropLast(unit.suffix.count)), count >= 0 else { throw expectation }
        let (bytes, overflow) = count.multipliedReportingOverflow(by: 1 << unit.shift)
        if overflow { throw expectation }
        return ByteCount(bytes: bytes)
    }

    var flagText: String {
        for unit in Self.units where unit.suffix.count == 3 && bytes > 0 && bytes % (1 << unit.shift) == 0 {
            return "\(bytes >> unit.shift)\(unit.suffix.prefix(1).uppercased())iB"
        }
        return String(bytes)
    }
}

/// A span of time in whole milliseconds: `250ms`, `30s`, `5m`, `1h`.
struct TimeSpan: FlagValue, Equatable {
    let milliseconds: Int

    static func seconds(_ count: Int) -> TimeSpan { TimeSpan(milliseconds: count * 1_000) }

    /// Longest suffix first, so that "ms" is not read as "s".
    private static let units: [(suffix: String, milliseconds: Int)] = [
        ("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000),
    ]

    static func parse(_ text: String) throws(FlagTextError) -> TimeSpan {
        let expectation = FlagTextError(expected: "a time such as 250ms, 30s, 5m or 1h")
        guard let unit = units.first(where: { text.hasSuffix($0.suffix) }),
            let count = Int(text.dropLast(unit.suffix.count)), count >= 0
        else { throw expectation }
        let (milliseconds, overflow) = count.multipliedReportingOverflow(by: unit.milliseconds)
        if overflow { throw expectation }
        return TimeSpan(milliseconds: milliseconds)
    }

    var flagText: String {
        if milliseconds == 0 { return "0s" }
        for unit in Self.units.reversed() where milliseconds % unit.milliseconds == 0 {
            return "\(milliseconds / unit.milliseconds)\(unit.suffix)"
        }
        return "\(milliseconds)ms"
    }
}

extension NetworkRange: FlagValue {
    static func parse(_ text: String) throws(FlagTextError) -> NetworkRange {
        guard let range = NetworkRange(text) else {
            throw FlagTextError(expected: "an address or a range of addresses, for example 10.0.0.0/8 or fd00::1")
        }
        return range
    }

    var flagText: String { description }
}

/// Where a server listens or is reached: `127.0.0.1:8080`, `[::1]:8080`, `:8080` (this machine).
struct Endpoint: FlagValue, Equatable {
    let host: String
    let port: Int

    static func parse(_ text: String) throws(FlagTextError) -> Endpoint {
        let expectation = FlagTextError(expected: "HOST:PORT, for example 127.0.0.1:8080")
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (1...65_535).contains(port)
        else { throw expectation }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        // A URL, or a user with a password.
        if host.contains(where: { "/@[] ".contains($0) }) { throw expectation }
        return Endpoint(host: host.isEmpty ? "127.0.0.1" : host, port: port)
    }

    var flagText: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
