internal import Basics
internal import Calls
internal import Dispatch
package import DocumentModel
internal import DocumentStore
internal import EventLoops
package import FirestoreMessages
package import Indexing
internal import NativeProtocol
internal import Synchronization

/// The path of the socket over which the server of a data directory is administrated.
package enum AdminSocket {
    package static func path(in directory: String) -> String { "\(directory)/admin.sock" }
}

/// Asks the server that runs on a data directory. Every function blocks until the answer has come.
package enum AdminClient {
    /// Why the server did not do what it was asked.
    package enum Failure: Error, CustomStringConvertible {
        /// No server runs on the directory.
        case noServer
        /// The socket is there and cannot be used, for example because another user owns it; the system's words.
        case unreachable(String)
        /// The server's words, or what became of the connection.
        case refused(String)

        package var description: String {
            switch self {
            case .noServer: "no server is running on this data directory"
            case .unreachable(let text): "the server of this data directory cannot be asked: \(text)"
            case .refused(let text): text
            }
        }
    }

    /// Has the server write a backup to `target`, an absolute path.
    package static func backup(directory: String, to target: String) throws(Failure) {
        _ = try call(.adminBackup, BackupRequest(directory: target), directory, as: EmptyMessage.self)
    }

    /// Has the server make a fork at `target`, an absolute path.
    /// - Returns: the bytes that were copied because files could not be shared.
    package static func fork(directory: String, to target: String) throws(Failure) -> Int {
        let request = ForkRequest(directory: target)
        return Int(clamping: try call(.adminFork, request, directory, as: ForkResponse.self).copiedBytes)
    }

    /// Has the server refuse the tokens of a user from sign-ins before this moment.
    package static func revoke(uid: String, directory: String) throws(Failure) -> RevokeUserResponse {
        try call(.adminRevokeUser, RevokeUserRequest(uid: uid), directory, as: RevokeUserResponse.self)
    }

    /// Has the server write everything committed so far into a sorted run.
    package static func checkpoint(directory: String) throws(Failure) {
        _ = try call(.adminCheckpoint, EmptyMessage(), directory, as: EmptyMessage.self)
    }

    /// Has the server make the indexes of a database those of a declaration.
    package static func applyIndexes(
        _ wanted: IndexDeclaration, in database: DatabaseName, directory: String
    ) throws(Failure) {
        _ = try call(.adminApplyIndexes, wanted.request(database: database), directory, as: EmptyMessage.self)
    }

    /// The indexes and overrides of a database.
    package static func listIndexes(
        of database: DatabaseName, directory: String
    ) throws(Failure) -> [ListIndexesResponse.Entry] {
        let request = ListIndexesRequest(database: "\(database)")
        return try call(.adminListIndexes, request, directory, as: ListIndexesResponse.self).entries
    }

    /// Where the server listens: `HOST:PORT`.
    package static func address(directory: String) throws(Failure) -> String {
        try call(.adminGetServer, EmptyMessage(), directory, as: ServerInformation.self).address
    }

    /// Makes a unary call of `hearth.admin.v1`.
    package static func call<Reply: FirestoreMessage>(
        _ method: FirestoreMessages.Method, _ request: some FirestoreMessage, _ directory: String, as type: Reply.Type
    ) throws(Failure) -> Reply {
        let loop = EventLoop(name: "hearth-admin")
        let connection: ClientConnection
        do throws(SocketError) {
            connection = try ClientConnection.connect(toSocketAt: AdminSocket.path(in: directory), on: loop)
        } catch {
            throw error.isNoListener ? .noServer : .unreachable(error.description)
        }
        loop.start()
        defer { loop.stop() }
        let answer = Mutex<(outcome: CallOutcome, reply: [UInt8])?>(nil)
        let done = DispatchSemaphore(value: 0)
        connection.unary(method.rpc, request.encodedBytes()) { outcome, reply in
            let copy = [UInt8](copying: reply)
            answer.withLock { $0 = (outcome, copy) }
            done.signal()
        }
        done.wait()
        guard let (outcome, reply) = answer.withLock({ $0 }), outcome.code == .ok else {
            throw .refused(answer.withLock { $0?.outcome.message } ?? "")
        }
        guard let message = try? Reply(wire: reply.byteSpan) else {
            throw .refused("the server's answer is malformed")
        }
        return message
    }
}
