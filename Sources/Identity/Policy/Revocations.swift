// Users whose tokens were revoked: tokens of a sign-in before that moment are refused.

internal import Basics
internal import DocumentJSON
package import FileSystem
internal import Storage
internal import Synchronization

/// The revocations of users, in a small file. Thread-safe.
///
/// A revocation is in force before it is in the file. One that cannot be written stays in force until the process ends,
/// and is written by the next ``refresh()`` that can.
package final class Revocations: Sendable {
    /// By the bytes of a user's identifier: tokens of sign-ins before are void. Seconds since 1970.
    package typealias Moments = [[UInt8]: Int64]

    /// Of the file.
    static let bytesMax = 16 << 20
    package static let usersMax = 100_000

    private struct State {
        var moments: Moments = [:]
        /// The file that `moments` was read from; nil while there has been none.
        var file: SmallFile.Version?
        /// What is known is in the file.
        var isKept = true
    }

    private let path: String?
    private let spareSpace: SpareSpace
    private let state = Mutex(State())
    /// Changes while ``state`` is held; an atomic, since each call looks at it.
    private let changes = Atomic<UInt64>(0)
    private let isAwaiting = Atomic<Bool>(false)
    /// Held while the file is read or written, so that nobody who asks waits for the disk.
    private let changing = Mutex(())

    /// Revocations that last as long as the process.
    package init() { (path, spareSpace) = (nil, SpareSpace()) }

    /// Reads the file; a missing one has no revocations.
    ///
    /// - Parameter spareSpace: for revocations on a full disk.
    /// - Throws: `PrincipalFault` if the file is damaged: a server that forgot revocations must not start.
    package init(_ path: String, spareSpace: SpareSpace = SpareSpace()) throws(PrincipalFault) {
        self.path = path
        self.spareSpace = spareSpace
        try refresh()
    }

    /// Reads the file again if another process has replaced it, and writes what it lacks. Cheap if neither is
    /// necessary, so it may be called every second. What is known and not in the file any more stays known.
    ///
    /// - Throws: `PrincipalFault` if the file is damaged, has been removed or cannot be written; nothing has changed
    ///   then.
    package func refresh() throws(PrincipalFault) {
        guard let path else { return }
        try Self.faults {
            try changing.withLock { _ in
                if !isKept { return try keep([:], path) }
                // Before the file is read: a change meanwhile is seen the next time.
                let file = SmallFile.Version(path)
                let known = state.withLock { $0.file }
                // One that cannot be looked at is not missing.
                if file == nil { _ = try Directory.isThere(path) }
                if file == known { return }
                if file == nil { throw PrincipalFault("\(path) has been removed") }
                adopt(try Self.union(moments, try Self.read(path)), of: file)
            }
        }
    }

    private func adopt(_ moments: Moments, of file: SmallFile.Version?, isKept: Bool = true) {
        state.withLock { state in
            let isNew = state.moments != moments
            state = State(moments: moments, file: file, isKept: isKept)
            if isNew { changes.add(1, ordering: .releasing) }
        }
    }

    /// Whether everything that is known is durable.
    package var isKept: Bool { state.withLock { $0.isKept } }

    /// What is known.
    package var moments: Moments { state.withLock { $0.moments } }

    /// Grows with each change; callers that were admitted before are looked at again then.
    package var version: UInt64 { changes.load(ordering: .acquiring) }

    /// Whether those of another server, which count here too, are not known yet. Nobody knows then whether a token of a
    /// user is void.
    package var areAwaited: Bool {
        get { isAwaiting.load(ordering: .acquiring) }
        set { isAwaiting.store(newValue, ordering: .releasing) }
    }

    /// Whether a user's token of a sign-in at `signedInAt` is void.
    package func isRevoked(uid: String, signedInAt: Int64) -> Bool {
        state.withLock { state in state.moments[Array(uid.utf8)].map { signedInAt < $0 } ?? false }
    }

    /// The moment before which a revocation refuses sign-ins: the end of the second in which it is made. Issuers give
    /// the time of a sign-in in whole seconds, rounded down, so one of that second may have come before the revocation.
    ///
    /// - Parameter microseconds: when the revocation is made, since 1970.
    /// - Returns: seconds since 1970.
    package static func moment(ofOneMadeAt microseconds: UInt64) -> Int64 { Int64(microseconds / 1_000_000) + 1 }

    /// Refuses the user's tokens of sign-ins before `moment`, in seconds since 1970. An earlier revocation that reaches
    /// farther stays, one of another process too. Durable when this returns.
    ///
    /// - Throws: as ``add(_:)``.
    package func revoke(uid: String, before moment: Int64) throws(PrincipalFault) {
        try add([Array(uid.utf8): moment])
    }

    /// Adds revocations; of each user the one that reaches farthest counts. Durable when this returns.
    ///
    /// - Throws: `PrincipalFault` if there are too many users; nothing has changed then. Or if the file cannot be read
    ///   or written: they are in force, and not durable.
    package func add(_ others: Moments) throws(PrincipalFault) {
        try Self.faults {
            try changing.withLock { _ in
                guard let path else { return adopt(try Self.union(moments, others), of: nil) }
                try keep(others, path)
            }
        }
    }

    /// Puts revocations in force, and writes all that the file lacks.
    private func keep(_ others: Moments, _ path: String) throws {
        let known = try Self.union(moments, others)
        // A longer file would not be read at the next start.
        let knownText = try Self.text(known)
        adopt(known, of: state.withLock { $0.file }, isKept: false)
        try spareSpace.writing(0) { () throws(StorageError) in try Directory.create(Directory.parent(of: path)) }
        try SmallFile.locked(besides: path) {
            let kept = try Self.read(path)
            let all = try Self.union(known, kept)
            if all != kept {
                let text = all == known ? knownText : try Self.text(all)
                try spareSpace.writing(text.utf8.count) { () throws(StorageError) in
                    try SmallFile.replace(path, text)
                }
            }
            adopt(all, of: SmallFile.Version(path))
        }
    }

    /// Of each user the latest moment.
    private static func union(_ parts: Moments...) throws(PrincipalFault) -> Moments {
        let all = parts.reduce(into: Moments()) { all, part in all.merge(part, uniquingKeysWith: max) }
        guard all.count <= usersMax else { throw PrincipalFault("more than \(usersMax) users have revoked tokens") }
        return all
    }

    private static func faults(_ body: () throws -> Void) throws(PrincipalFault) {
        do {
            try body()
        } catch let fault as PrincipalFault {
            throw fault
        } catch {
            throw PrincipalFault("\(error)")
        }
    }

    private static func text(_ moments: Moments) throws(PrincipalFault) -> String {
        var users: [String: JSONValue] = [:]
        for (uid, moment) in moments { users[Hexadecimal.text(uid.byteSpan)] = .integer(moment) }
        let text = JSONValue.object(["revokedBefore": .object(users)]).jsonLines
        guard text.utf8.count <= bytesMax else {
            throw PrincipalFault("the identifiers of users with revoked tokens take more than \(bytesMax) bytes")
        }
        return text
    }

    private static func read(_ path: String) throws(PrincipalFault) -> Moments {
        let text: [UInt8]
        do throws(StorageError) {
            guard try Directory.isThere(path) else { return [:] }
            text = try SmallFile.read(path, bytesMax: bytesMax, isPrivate: true)
        } catch {
            throw PrincipalFault("\(error)")
        }
        guard case .object(let users)? = (try? JSONValue.read(text))?["revokedBefore"] else {
            throw PrincipalFault("\(path) is not a file of revocations")
        }
        var moments: Moments = [:]
        for (uid, moment) in users {
            guard let uid = Hexadecimal.bytes(uid), let moment = moment.wholeNumber else {
                throw PrincipalFault("\(path) is damaged")
            }
            moments[uid] = moment
        }
        return moments
    }
}
