// A local socket in the data directory by which the tools of the same machine ask a running server for favours.
//
// `DIR/control.sock` takes one line and answers one line:
//
//     backup /absolute/path\n          ->   ok\n   or   error TEXT\n
//     indexes DATABASE DECLARATION\n   ->   ok\n   or   error TEXT\n            the indexes that are wanted
//     list-indexes DATABASE\n          ->   ok STATE ENTRY ...\n                  entries of firestore.indexes.json
//     address\n                        ->   ok HOST:PORT\n                        where the server listens
//
// A declaration and an entry are written as hexadecimal digits.
//
// Whoever may open the socket may ask: the directory's permissions decide, as they do about the data itself.

internal import Basics
package import DocumentModel
package import DocumentStore
internal import Glibc
internal import Synchronization

/// The server's side. A thread of its own waits for connections and serves them one after the other.
final class ControlSocket: Sendable {
    private let descriptor: Int32
    private let path: String
    /// Where the server listens.
    private let address: String
    fileprivate let store: DocumentStore
    fileprivate let log: Log

    private init(descriptor: Int32, path: String, address: String, store: DocumentStore, log: Log) {
        self.descriptor = descriptor
        self.path = path
        self.address = address
        self.store = store
        self.log = log
    }

    /// Opens the socket; a server that cannot have one says so in its log and goes on without.
    static func open(in directory: String, address: String, store: DocumentStore, log: Log) -> ControlSocket? {
        let path = ControlAddress.path(in: directory)
        unlink(path)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        // Nobody but the owner gets in between bind and chmod either.
        let mask = umask(0o177)
        let bound = ControlAddress.with(directory: directory) { bind(descriptor, $0, $1) }
        umask(mask)
        guard bound == 0, listen(descriptor, 8) == 0 else {
            log(.warning, "control_socket_failed", ["path": path, "message": String(cString: strerror(errno))])
            Glibc.close(descriptor)
            return nil
        }
        let control = ControlSocket(descriptor: descriptor, path: path, address: address, store: store, log: log)
        control.startThread()
        return control
    }

    /// Stops taking requests and removes the socket.
    func close() {
        // Wakes the thread out of `accept`, which then lets go of the descriptor.
        shutdown(descriptor, Int32(SHUT_RDWR))
        unlink(path)
    }

    private func startThread() {
        do {
            try SystemThread(name: "control") { self.serve() }.detach()
        } catch {
            log(.warning, "control_socket_failed", ["message": "\(error)"])
        }
    }

    private func serve() {
        while true {
            let connection = accept(descriptor, nil, nil)
            if connection < 0 {
                if errno == EINTR || errno == ECONNABORTED { continue }
                break
            }
            // One who sends nothing does not hold up the next.
            var patience = timeval(tv_sec: 5, tv_usec: 0)
            setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
            if let line = LineIO.readLine(connection) { LineIO.write(answer(line) + "\n", to: connection) }
            Glibc.close(connection)
        }
        Glibc.close(descriptor)
    }

    private func answer(_ line: String) -> String {
        let words = line.split(separator: " ").map(String.init)
        if words.count == 3, words[0] == "indexes" { return declare(words[2], in: words[1]) }
        if words.count == 2, words[0] == "list-indexes" { return list(words[1]) }
        if line == "address" { return "ok \(address)" }
        guard line.hasPrefix("backup /") else { return "error unknown request" }
        let target = String(line.dropFirst("backup ".count))
        do {
            try store.backup(to: target)
            log(.info, "backup_written", ["directory": target])
            return "ok"
        } catch {
            log(.error, "backup_failed", ["directory": target, "message": "\(error)"])
            return "error " + "\(error)".split(separator: "\n").joined(separator: " ")
        }
    }
}

extension ControlSocket {
    private func declare(_ digits: String, in name: String) -> String {
        guard let database = try? DatabaseName(name), let bytes = Hexadecimal.bytes(digits),
            let wanted = IndexDeclaration(bytes.span.bytes)
        else { return "error malformed request" }
        let outcome = Mutex<Result<Void, RequestError>?>(nil)
        let done = DoneSignal()
        store.declareIndexes(wanted, in: database) { result in
            outcome.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        switch outcome.withLock({ $0 }) {
        case .success, nil:
            log(.info, "indexes_declared", [
                "database": "\(database)", "indexes": "\(wanted.indexes.count)",
                "overrides": "\(wanted.fieldOverrides.count)",
            ])
            return "ok"
        case .failure(let error): return "error \(error.message)"
        }
    }

    private func list(_ name: String) -> String {
        guard let database = try? DatabaseName(name) else { return "error malformed request" }
        let entries = store.indexListing(in: database)
        return "ok" + entries.map { " \($0.state.rawValue) \($0.json.withUTF8Span { Hexadecimal.text($0) })" }.joined()
    }
}

/// Waits for something that happens once on another thread.
private final class DoneSignal: @unchecked Sendable {  // The semaphore is made for this.
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() { sem_init(semaphore, 0, 0) }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func signal() { sem_post(semaphore) }

    func wait() { while sem_wait(semaphore) != 0 {} }
}

/// The tools' side.
package enum ControlClient {
    /// Why a running server did not do what it was asked.
    package enum Failure: Error, CustomStringConvertible {
        /// No server runs on the directory, or it is not ours to ask.
        case noServer
        /// The server's own words.
        case refused(String)
        /// The server went away before it answered.
        case noAnswer

        package var description: String {
            switch self {
            case .noServer: "no server is running on this data directory"
            case .refused(let text): text
            case .noAnswer: "the server closed the connection before it replied"
            }
        }
    }

    /// Has the server that runs on `directory` write a backup to `target`, an absolute path.
    package static func backup(directory: String, to target: String) throws(Failure) {
        _ = try ask("backup \(target)", directory: directory)
    }

    /// Has the server make the indexes of a database those of a declaration.
    package static func declareIndexes(
        _ wanted: IndexDeclaration, in database: DatabaseName, directory: String
    ) throws(Failure) {
        var writer = ByteBuffer(capacity: 256)
        wanted.append(to: &writer)
        _ = try ask("indexes \(database) \(Hexadecimal.text(writer.bytes))", directory: directory)
    }

    /// The indexes and overrides of a database: the state and the entry of firestore.indexes.json.
    package static func listIndexes(
        of database: DatabaseName, directory: String
    ) throws(Failure) -> [(state: String, json: String)] {
        let words = try ask("list-indexes \(database)", directory: directory).split(separator: " ").map(String.init)
        return stride(from: 0, to: words.count - 1, by: 2).map { index in
            (words[index], String(decoding: Hexadecimal.bytes(words[index + 1]) ?? [], as: UTF8.self))
        }
    }

    /// Where the server that runs on `directory` listens: `HOST:PORT`.
    package static func address(directory: String) throws(Failure) -> String { try ask("address", directory: directory) }

    /// Asks one question; returns what follows `ok`.
    private static func ask(_ question: String, directory: String) throws(Failure) -> String {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw .noServer }
        defer { close(descriptor) }
        guard ControlAddress.with(directory: directory, { connect(descriptor, $0, $1) }) == 0 else { throw .noServer }
        LineIO.write(question + "\n", to: descriptor)
        guard let line = LineIO.readLine(descriptor) else { throw .noAnswer }
        let rest = String(line.drop { $0 != " " }.dropFirst())
        guard line == "ok" || line.hasPrefix("ok ") else { throw .refused(rest) }
        return rest
    }
}

/// The address of a directory's control socket.
private enum ControlAddress {
    static func path(in directory: String) -> String { "\(directory)/control.sock" }

    /// Lends the socket address. A path too long for one (107 bytes) is reached through the directory's descriptor.
    static func with(directory: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        let direct = path(in: directory)
        if direct.utf8.count < 108 { return call(direct, body) }
        let descriptor = Glibc.open(directory, O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return -1 }
        defer { close(descriptor) }
        return call(path(in: "/proc/self/fd/\(descriptor)"), body)
    }

    private static func call(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}

/// Lines over a blocking descriptor.
private enum LineIO {
    /// Room for the indexes of a database, which are at most a thousand entries of some 3,000 bytes.
    private static let lineBytesMaximum = 16 << 20

    /// The first line, without its newline; nil when there is none. What follows it is lost: each side writes one line.
    static func readLine(_ descriptor: Int32) -> String? {
        var line: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while line.count < lineBytesMaximum {
            let count = piece.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return nil }
            if let end = piece[..<count].firstIndex(of: UInt8(ascii: "\n")) {
                return String(decoding: line + piece[..<end], as: UTF8.self)
            }
            line += piece[..<count]
        }
        return nil
    }

    static func write(_ text: String, to descriptor: Int32) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard sent > 0 else { return }
            rest = rest.dropFirst(sent)
        }
    }
}
