package import Basics
import Glibc
import Synchronization

/// Where a store in this process keeps its data.
package enum StoreLocation: Hashable, Sendable {
    /// An absolute path of a data directory.
    case directory(String)
    /// Memory, by name. The data lasts until the last instance that uses it has ended.
    case memory(String)
    /// A fork of a data directory, which lasts until the instance that uses it has ended. The number distinguishes the
    /// forks of a process.
    case fork(of: String, number: Int)

    /// What the locations of `FirestoreSettings.host` begin with.
    package static let scheme = "file:"
    private static let memoryName = ":memory:"
    private static let forkScheme = "fork:"
    private static let forks = Atomic<Int>(0)

    /// Whether a text is a location.
    package static func isLocation(_ text: String) -> Bool { text.hasPrefix(scheme) || text.hasPrefix(forkScheme) }

    /// Reads a location: `file:///PATH` or `file:PATH` with percent-encoding (RFC 8089), `file::memory:`,
    /// `file::memory:NAME`; `fork:file:///PATH` for a new fork each time.
    ///
    /// - Returns: `nil` if the text does not begin with `file:` or `fork:`.
    /// - Throws: `.invalidArgument` if it names another computer or no path.
    package init?(_ text: String) throws(RequestError) {
        if text.hasPrefix(Self.forkScheme) {
            guard case .directory(let path)? = try Self(String(text.dropFirst(Self.forkScheme.count))) else {
                throw Self.invalid(text)
            }
            self = .fork(of: path, number: Self.forks.add(1, ordering: .relaxed).newValue)
            return
        }
        guard text.hasPrefix(Self.scheme) else { return nil }
        let rest = text.dropFirst(Self.scheme.count)
        if rest.hasPrefix(Self.memoryName) {
            self = .memory(String(rest.dropFirst(Self.memoryName.count)))
            return
        }
        var path = rest
        if rest.hasPrefix("//") {
            let place = rest.dropFirst(2)
            path = place[(place.firstIndex(of: "/") ?? place.endIndex)...]
            let host = place[..<path.startIndex]
            guard host.isEmpty || host == "localhost" else { throw Self.invalid(text) }
        }
        guard let decoded = PercentEncoding.decoded(path), !decoded.isEmpty, !decoded.utf8.contains(0) else {
            throw Self.invalid(text)
        }
        self = .directory(Self.canonical(decoded))
    }

    /// The location of a data directory as `FirestoreSettings.host` has it: percent-encoded.
    package static func host(ofDirectory path: String) -> String {
        var encoded = Array("\(scheme)//".utf8)
        for byte in absolute(path).utf8 {
            if isPlain(byte) { encoded.append(byte) } else { PercentEncoding.appendEncoded(byte, to: &encoded) }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// The slash, and the characters that RFC 3986 calls unreserved.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// One spelling of each directory, so that all instances on it share one store. The directory may not exist yet.
    private static func canonical(_ path: String) -> String {
        var existing = components(of: absolute(path))
        var missing: [String] = []
        while let last = existing.last {
            if let resolved = resolved("/" + existing.joined(separator: "/")) {
                existing = components(of: resolved)
                break
            }
            missing.insert(last, at: 0)
            existing.removeLast()
        }
        return "/" + (existing + missing).joined(separator: "/")
    }

    private static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let current = getcwd(nil, 0) else { return path }
        defer { free(current) }
        return "\(String(cString: current))/\(path)"
    }

    /// The components of an absolute path, without `.` and `..`.
    private static func components(of path: String) -> [String] {
        path.split(separator: "/").reduce(into: []) { components, component in
            switch component {
            case ".": break
            case "..": _ = components.popLast()
            default: components.append(String(component))
            }
        }
    }

    /// The path without symbolic links; `nil` if there is no such file.
    private static func resolved(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private static func invalid(_ text: String) -> RequestError {
        .invalidArgument(
            """
            "\(text)" is not a data directory: use file:///PATH with an absolute path, fork:file:///PATH, or \
            file::memory:.
            """)
    }
}

extension StoreLocation: CustomStringConvertible {
    package var description: String {
        switch self {
        case .directory(let path): path
        case .memory(let name): Self.scheme + Self.memoryName + name
        case .fork(let path, _): "a fork of \(path)"
        }
    }
}
