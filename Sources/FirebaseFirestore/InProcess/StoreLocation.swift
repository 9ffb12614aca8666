package import Basics
import Foundation

/// Where a store in this process keeps its data.
package enum StoreLocation: Hashable, Sendable {
    /// An absolute path of a data directory.
    case directory(String)
    /// Memory, by name. The data lasts until the last instance that uses it has ended.
    case memory(String)

    /// What the locations of `FirestoreSettings.host` begin with.
    static let scheme = "file:"
    private static let memoryName = ":memory:"

    /// Reads a location: `file:///PATH` or `file:PATH` with percent-encoding (RFC 8089), `file::memory:`,
    /// `file::memory:NAME`.
    ///
    /// - Returns: `nil` if the text does not begin with `file:`.
    /// - Throws: `.invalidArgument` if it names another computer or no path.
    package init?(_ text: String) throws(RequestError) {
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

    /// The location of a data directory as `FirestoreSettings.host` has it.
    static func host(ofDirectory path: String) -> String {
        scheme + "//" + URL(fileURLWithPath: path).path(percentEncoded: true)
    }

    /// One spelling of each directory, so that all instances on it share one store. The directory may not exist yet.
    private static func canonical(_ path: String) -> String {
        var existing = URL(fileURLWithPath: path).standardizedFileURL
        var missing: [String] = []
        while existing.path != "/", !FileManager.default.fileExists(atPath: existing.path) {
            missing.append(existing.lastPathComponent)
            existing.deleteLastPathComponent()
        }
        return missing.reversed().reduce(existing.resolvingSymlinksInPath()) { $0.appendingPathComponent($1) }.path
    }

    private static func invalid(_ text: String) -> RequestError {
        .invalidArgument(
            "\"\(text)\" is not a data directory: use file:///PATH with an absolute path, or file::memory:.")
    }
}

extension StoreLocation: CustomStringConvertible {
    package var description: String {
        switch self {
        case .directory(let path): path
        case .memory(let name): Self.scheme + Self.memoryName + name
        }
    }
}
