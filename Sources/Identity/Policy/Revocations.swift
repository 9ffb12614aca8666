// Users whose tokens were revoked: tokens of a sign-in before that moment are refused.

internal import Basics
internal import FileSystem
internal import Storage
internal import Synchronization

/// The revocations of users, in a small file. Thread-safe.
package final class Revocations: Sendable {
    static let bytesMax = 16 << 20
    package static let usersMax = 100_000

    private struct State {
        /// By the bytes of the identifier; seconds since 1970.
        var moments: [[UInt8]: Int64] = [:]
        var version: UInt64 = 0
    }

    private let path: String?
    private let state = Mutex(State())
    /// Held while the file is written, so that nobody who asks waits for the disk.
    private let writing = Mutex(())

    /// Revocations that last as long as the process.
    package init() { path = nil }

    /// Reads the file; a missing one has no revocations.
    ///
    /// - Throws: `PrincipalFault` if the file is damaged: a server that forgot revocations must not start.
    package init(_ path: String) throws(PrincipalFault) {
        self.path = path
        let moments = try Self.read(path)
        state.withLock { $0.moments = moments }
    }

    /// Grows with each change; streams look again then.
    package var version: UInt64 { state.withLock { $0.version } }

    /// Whether a user's token of a sign-in at `signedInAt` is void.
    package func isRevoked(uid: String, signedInAt: Int64) -> Bool {
        state.withLock { state in state.moments[Array(uid.utf8)].map { signedInAt < $0 } ?? false }
    }

    /// Refuses the user's tokens of sign-ins before `moment`, in seconds since 1970. An earlier revocation that reaches
    /// farther stays. Durable when this returns.
    ///
    /// - Throws: `PrincipalFault` if the file cannot be written or has too many users; nothing has changed then.
    package func revoke(uid: String, before moment: Int64) throws(PrincipalFault) {
        do {
            try writing.withLock { _ in
                var moments = state.withLock { $0.moments }
                moments[Array(uid.utf8)] = max(moment, moments[Array(uid.utf8)] ?? moment)
                guard moments.count <= Self.usersMax else {
                    throw PrincipalFault("more than \(Self.usersMax) users have revoked tokens")
                }
                if let path { try SmallFile.replace(path, Self.text(moments)) }
                state.withLock { ($0.moments, $0.version) = (moments, $0.version + 1) }
            }
        } catch let fault as PrincipalFault {
            throw fault
        } catch {
            throw PrincipalFault("\(error)")
        }
    }

    private static func text(_ moments: [[UInt8]: Int64]) -> String {
        var users: [String: JSONValue] = [:]
        for (uid, moment) in moments { users[Hexadecimal.text(uid.byteSpan)] = .integer(moment) }
        return JSONValue.object(["revokedBefore": .object(users)]).jsonLines
    }

    private static func read(_ path: String) throws(PrincipalFault) -> [[UInt8]: Int64] {
        guard Directory.exists(path) else { return [:] }
        let text: [UInt8]
        do throws(StorageError) {
            text = try SmallFile.read(path, bytesMax: bytesMax, isPrivate: true)
        } catch {
            throw PrincipalFault("\(error)")
        }
        guard case .object(let users)? = (try? JSONValue.read(text))?["revokedBefore"] else {
            throw PrincipalFault("\(path) is not a file of revocations")
        }
        var moments: [[UInt8]: Int64] = [:]
        for (uid, moment) in users {
            guard let uid = Hexadecimal.bytes(uid), let moment = moment.wholeNumber else {
                throw PrincipalFault("\(path) is damaged")
            }
            moments[uid] = moment
        }
        return moments
    }
}
