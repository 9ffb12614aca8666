// What a service manager such as systemd learns from the server: sd_notify(3).

import Glibc

/// The service manager that started this process, and waits for datagrams about its state.
struct ServiceManager {
    /// What has become of the server.
    enum State {
        /// It accepts calls; `message` is for the manager's status page.
        case ready(_ message: String)
        /// It reads files again, from a moment of the monotonic clock on, in microseconds.
        case reloading(since: UInt64)
        /// It ends.
        case stopping
        /// It works. Without this state for as long as the manager waits, it ends the process.
        case alive

        fileprivate var text: String {
            switch self {
            case .ready(let message): "READY=1\nSTATUS=\(message)"
            case .reloading(let microseconds): "RELOADING=1\nMONOTONIC_USEC=\(microseconds)"
            case .stopping: "STOPPING=1"
            case .alive: "WATCHDOG=1"
            }
        }
    }

    /// The path of the manager's socket; one that begins with `@` is in the abstract name space.
    let socketPath: String
    /// Milliseconds without ``State/alive`` after which the manager ends the process; nil if it never does.
    let watchdogMilliseconds: Int?

    /// - Parameters:
    ///   - environment: looks a variable up.
    ///   - process: the identifier of this process.
    /// - Returns: nil if no manager waits.
    init?(
        environment: (String) -> String? = { name in getenv(name).map { String(cString: $0) } },
        process: pid_t = getpid()
    ) {
        guard let path = environment("NOTIFY_SOCKET"), let first = path.first, ["/", "@"].contains(first),
            (2...Self.pathBytesMax).contains(path.utf8.count)
        else { return nil }
        socketPath = path
        let isForOther = environment("WATCHDOG_PID").map { $0 != String(process) } ?? false
        let microseconds = environment("WATCHDOG_USEC").flatMap { Int($0) } ?? 0
        watchdogMilliseconds = isForOther || microseconds < 1_000 ? nil : microseconds / 1_000
    }

    /// Sends the state; a manager that is gone does not receive it.
    ///
    /// - Returns: whether it was sent.
    @discardableResult
    func notify(_ state: State) -> Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let bytes = Array(state.text.utf8)
        return withAddress { address, length in
            sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT), address, length)
                == bytes.count
        }
    }

    /// The state of a reload that begins now.
    static var reloading: State {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return .reloading(since: UInt64(now.tv_sec) * 1_000_000 + UInt64(now.tv_nsec) / 1_000)
    }

    // MARK: The socket

    /// Bytes of a socket's path, without the NUL at its end.
    private static let pathBytesMax = 107

    private func withAddress(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Bool) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var path = Array(socketPath.utf8)
        // The name of an abstract socket begins with NUL, and has none at its end.
        if path.first == UInt8(ascii: "@") { path[0] = 0 } else { path.append(0) }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let length = (MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2) + path.count
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(length)) }
        }
    }
}
