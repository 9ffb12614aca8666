import TestSupport
import Testing

/// A page's session of Write; each request has its own connection, which may be on another loop.
final class WebPage {
    /// The path of a session of Write.
    static let write = "/google.firestore.v1.Firestore/Write/channel?VER=8"
    private static let database = "projects/p/databases/d"

    let port: Int
    private(set) var id = ""
    private var backChannel: HTTPTestClient?
    private var sent = 0
    private var received = 0

    init(_ live: LiveDatabaseServer) { port = Int(live.gateway.port) }

    func request(_ method: String, _ query: String, body: String? = nil) -> HTTPTestClient.Reply? {
        let headers = ["Origin: http://localhost:3000", "Content-Type: application/x-www-form-urlencoded"]
        return HTTPTestClient(port: port).request(
            method, Self.write + query, body: body, headers: headers)
    }

    /// Opens a session and returns the response.
    func open(_ body: String = "count=1&ofs=0&req0___data__={\"database\":\"projects/p/databases/d\"}") throws
        -> HTTPTestClient.Reply
    {
        let reply = try #require(request("POST", "&RID=59074&CVER=22&X-HTTP-Session-Id=gsessionid&t=1", body: body))
        id = reply.body.split(separator: "\"").dropFirst(3).first.map(String.init) ?? ""
        sent = body.contains("count=1") ? 1 : 0
        return reply
    }

    /// Sends a message, repeatedly if asked to, and returns the body of the last response.
    func send(_ json: String, times: Int = 1) throws -> String {
        let body = "count=1&ofs=\(sent)&req0___data__=\(json)"
        sent += 1
        let replies = (0..<times).map { _ in request("POST", "&SID=\(id)&RID=1&AID=\(received)", body: body) }
        let last = try #require(replies.last ?? nil)
        expectEqual(last.status, 200)
        return last.body
    }

    func set(_ path: String, mask: String = "") throws -> String {
        let name = "\(Self.database)/documents/\(path)"
        return try send("{\"writes\":[{\"update\":{\"name\":\"\(name)\",\"fields\":{}}\(mask)}]}")
    }

    /// Opens a back channel and reads its head.
    func listen(_ parameters: String = "&CI=0") throws -> HTTPTestClient.Reply {
        ask(parameters)
        return try head()
    }

    /// Opens a back channel.
    func ask(_ parameters: String) {
        let client = HTTPTestClient(port: port)
        client.send(
            """
            GET \(Self.write)&RID=rpc&SID=\(id)&AID=\(received)\(parameters)&TYPE=xmlhttp HTTP/1.1\r
            Host: localhost\r
            Origin: http://localhost:3000\r\n\r\n
            """)
        backChannel = client
    }

    /// The head of the back channel, which comes with its first frame.
    func head() throws -> HTTPTestClient.Reply { try #require(backChannel?.head()) }

    /// The next frame on the back channel, without its length; empty at the end of the response.
    func frame() throws -> String {
        let chunk = try #require(backChannel?.chunk())
        guard let end = chunk.firstIndex(of: "\n") else { return chunk }
        let json = String(chunk[chunk.index(after: end)...])
        expectEqual(Int(chunk[..<end]), json.utf16.count)
        return json
    }

    /// Reads frames until one has the text.
    func frame(with text: String) throws -> String {
        for _ in 0..<20 {
            let frame = try frame()
            if frame.contains(text) { return frame }
            if frame.isEmpty { break }
        }
        Issue.record("no frame has \(text)")
        return ""
    }

    func acknowledge(_ id: Int) { received = id }

    /// Cuts the connection of the back channel.
    func cut() { backChannel = nil }
}
