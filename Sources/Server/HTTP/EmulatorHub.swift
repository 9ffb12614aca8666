// The routes by which tools of Firebase find emulators. The official tools have a hub at a separate address, which
// FIREBASE_EMULATOR_HUB names. Here the server itself is the hub:
//
//     GET  /emulators                            what runs where
//     PUT  /functions/disableBackgroundTriggers  there are no functions, so there is nothing to do
//     PUT  /functions/enableBackgroundTriggers
//     POST /_admin/export                        refused: no caller makes the server write a file of its choice

internal import Basics
internal import HTTPProtocols

/// Answers the hub's routes, for requests that were admitted.
struct EmulatorHub {
    /// `HOST:PORT` of the server.
    let address: String

    /// The first segments of the hub's paths.
    static let prefixes: Set<String> = ["emulators", "functions", "_admin"]

    /// - Parameter path: the segments of the path, joined by slashes.
    /// - Returns: the body of the reply.
    func reply(_ method: HTTPMethod, _ path: String) throws(RequestError) -> String {
        switch (method, path) {
        case (.get, "emulators"): return emulators
        case (.put, "functions/disableBackgroundTriggers"): return #"{"enabled":false}"#
        case (.put, "functions/enableBackgroundTriggers"): return #"{"enabled":true}"#
        case (.post, "_admin/export"):
            throw RequestError(
                .unimplemented,
                "This server writes no files for callers. Use the command hearth backup on its machine.")
        default: throw RequestError(.notFound, "There is no resource at this path.")
        }
    }

    private var emulators: String {
        let parts = address.split(separator: ":", omittingEmptySubsequences: false)
        let port = parts.last.map(String.init) ?? ""
        let host = parts.dropLast().joined(separator: ":").filter { $0 != "[" && $0 != "]" }
        let family = host.contains(":") ? "IPv6" : "IPv4"
        let name = JSONText.quoted(host)
        let place = "\"host\":\(name),\"port\":\(port)"
        let listen = "\"listen\":[{\"address\":\(name),\"family\":\"\(family)\",\"port\":\(port)}]"
        let entries = ["hub", "firestore"].map { "\"\($0)\":{\"name\":\"\($0)\",\(place),\(listen)}" }
        return "{\(entries.joined(separator: ","))}"
    }
}
