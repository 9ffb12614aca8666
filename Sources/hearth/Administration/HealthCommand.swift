// `hearth health`: whether the server of a data directory takes work.

import Basics
import EventLoops
import Glibc
import Server

/// Asks the server of a data directory whether it is ready, for supervisors and containers.
enum HealthCommand: BlockingSubcommand {
    static let name = "health"
    static let summary = "Asks the server of a data directory whether it is ready."
    static let words: [String] = []
    static let data = Flag("data", "DIR", default: "./hearth-data", help: "The data directory of the server.")
    static let timeout = Flag(
        "timeout", "TIME", default: TimeSpan.seconds(5), in: TimeSpan(milliseconds: 1)...TimeSpan.seconds(86_400),
        help: "How long to wait for the answer.")
    static let json = Flag(switch: "json", help: "Print an object with the members ready and reason.")
    static let flagGroups = [FlagGroup(heading: "Flags", flags: [data, timeout, json])]

    static let discussion = """
        Asks over the socket admin.sock in the data directory, which needs neither TLS nor a
        credential, as the user that runs the server. Prints "ready", and the exit status is
        0, if the server accepts work. Otherwise the reason is on standard error, and the
        exit status is 1: there is no server, it does not answer, it ends, its disk is full
        or has failed. GET /readyz on the server's port has the same answer.

        Examples:

          hearth health --data /var/lib/hearth
          hearth health --timeout 1s && echo up
        """

    static func run(_ arguments: ParsedArguments) throws {
        let reply = Result { () throws(CommandFailure) in
            let reply = try LocalPage.get(
                "/readyz", directory: arguments[data], milliseconds: arguments[timeout].milliseconds)
            guard reply.status == 200 else { throw CommandFailure(reply.body) }
            return reply.body
        }
        if arguments[json] { try StandardOutput.print(text(reply)) }
        let body = try reply.get()
        if !arguments[json] { try StandardOutput.print(body) }
    }

    /// The object of JSON.
    private static func text(_ reply: Result<String, CommandFailure>) -> String {
        switch reply {
        case .success: "{\"ready\":true,\"reason\":null}"
        case .failure(let failure): "{\"ready\":false,\"reason\":\(JSONText.quoted(failure.description))}"
        }
    }
}

/// Reads a page of a server over its socket in the file system.
enum LocalPage {
    /// The status of HTTP, and the text without white space at its end.
    struct Reply: Equatable {
        let status: Int
        let body: String
    }

    /// Bytes of a reply: the metrics of a server are the longest.
    private static let bytesMax = 16 << 20

    /// Asks for a page; blocks until the reply has come.
    ///
    /// - Parameters:
    ///   - page: its path.
    ///   - directory: the data directory of the server.
    ///   - milliseconds: how long to wait.
    static func get(_ page: String, directory: String, milliseconds: Int) throws(CommandFailure) -> Reply {
        let descriptor: Int32
        do throws(SocketError) {
            descriptor = try LocalSocket.connect(to: AdminSocket.path(in: directory))
        } catch {
            try PathWords.checkAccess(directory)
            throw CommandFailure(error.isNoListener ? "no server is running on \(directory)" : "\(error)")
        }
        defer { close(descriptor) }
        let deadline = ContinuousClock.now + .milliseconds(milliseconds)
        // A request of so few bytes fits into the buffer of a new socket.
        let request = Array("GET \(page) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)
        guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
            throw CommandFailure("the server cannot be asked: \(String(cString: strerror(errno)))")
        }
        return try reply(try bytes(descriptor, before: deadline))
    }

    /// What comes until the server closes the connection.
    private static func bytes(
        _ descriptor: Int32, before deadline: ContinuousClock.Instant
    ) throws(CommandFailure) -> [UInt8] {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 4_096)
        while bytes.count <= bytesMax {
            let left = Int(max(deadline - .now, .zero) / .milliseconds(1))
            var input = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let ready = poll(&input, 1, Int32(clamping: left))
            if ready == 0 { throw CommandFailure("the server does not answer") }
            let count = ready < 0 ? -1 : recv(descriptor, &part, part.count, 0)
            if count == 0 { return bytes }
            if count > 0 {
                bytes += part[..<count]
            } else if ![EINTR, EAGAIN].contains(errno) {
                throw CommandFailure("the server does not answer: \(String(cString: strerror(errno)))")
            }
        }
        throw CommandFailure("the server's answer is not a page")
    }

    /// Reads a reply of HTTP/1.1 that ends with its connection.
    static func reply(_ bytes: [UInt8]) throws(CommandFailure) -> Reply {
        let text = String(decoding: bytes, as: UTF8.self).unicodeScalars
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            String(String.UnicodeScalarView(line.last == "\r" ? line.dropLast() : line))
        }
        let words = lines[0].split(separator: " ")
        guard words.count >= 2, words[0] == "HTTP/1.1", let status = Int(words[1]), let end = lines.firstIndex(of: ""),
            end < lines.count - 1
        else { throw CommandFailure("the server's answer is not a page") }
        let body = lines[(end + 1)...].filter { !$0.isEmpty }.joined(separator: "\n")
        return Reply(status: status, body: body)
    }
}
