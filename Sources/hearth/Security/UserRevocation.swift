// `hearth token revoke-user`: a user's tokens are refused from now on.
//
//     a server runs on DIR        it is asked; all servers of its cluster learn of it, and the source of a replica
//     a cluster, and no server    --cluster names the database in which the servers look
//     another directory           its file is changed

import Basics
import EmbeddedEngine
import FileSystem
import Glibc
import Identity
import PostgreSQLLog
import Server

/// Asks a server, changes the database of a cluster, or a file.
enum UserRevocation {
    static let data = Flag("data", "DIR", default: "./hearth-data", help: "The data directory of the server.")
    static let flags: [any FlagDeclaration] = [data, ClusterCommand.cluster]

    static func run(_ uid: String, _ arguments: ParsedArguments) throws {
        guard RevocationKeeper.lengths.contains(uid.unicodeScalars.count) else {
            throw CommandFailure("a user's identifier has 1 to 128 characters")
        }
        let places = try revoke(uid, arguments)
        try StandardOutput.print("tokens of \(uid) from sign-ins before this moment are refused\(places)")
    }

    /// Before which sign-ins do not count.
    /// - Parameter other: the time of another clock, in microseconds since 1970: that of this machine may be late.
    private static func moment(_ other: UInt64 = 0) -> Int64 {
        Revocations.moment(ofOneMadeAt: max(SystemClock.microseconds(), other))
    }

    private static let inCluster = ", at all servers of the cluster within seconds"

    /// - Returns: where the tokens are refused, beside one server.
    private static func revoke(_ uid: String, _ arguments: ParsedArguments) throws -> String {
        let (directory, cluster) = (arguments[data], arguments.value(of: ClusterCommand.cluster))
        if let cluster, !arguments.has(data) {
            try revoke(uid, inCluster: cluster)
            return inCluster
        }
        try PathWords.checkAccess(directory)
        do throws(AdminClient.Failure) {
            let answer = try AdminClient.revoke(uid: uid, directory: directory)
            if answer.isInCluster { return inCluster }
            if answer.source.isEmpty { return "" }
            return ", also at the source \(answer.source), and at its replicas within seconds"
        } catch {
            guard case .noServer = error else { throw error }
        }
        let isCache = try ClusterStores.isCache(directory)
        if let cluster, isCache || arguments.given.contains(ClusterCommand.cluster.name) {
            try revoke(uid, inCluster: cluster)
            return inCluster
        }
        if isCache {
            throw CommandFailure(
                "no server runs on \(directory), which belongs to a cluster: give the command at a server that runs, "
                    + "or name the home database with --cluster")
        }
        try revoke(uid, inDirectory: directory)
        return ""
    }

    private static func revoke(_ uid: String, inCluster address: String) throws {
        if let problem = PostgreSQLConnection.libraryProblem { throw CommandFailure(problem) }
        let session = try PostgreSQLSession(address: address)
        defer { session.close() }
        // Nobody looks in another one.
        guard try session.run(StoreTables.exists).first?.number(0) == 1,
            try DatabaseOwner(session).map(\.isHome) ?? true
        else { throw CommandFailure("the database that --cluster names is not the home database of a cluster") }
        let clock = try session.run(StoreTables.clock).first?.number(0) ?? 0
        try ClusterRevocations(HomeDatabase(address: address)).add([Array(uid.utf8): moment(clock)])
    }

    private static func revoke(_ uid: String, inDirectory directory: String) throws {
        try PathWords.checkDataDirectory(directory)
        // The server could not read a file of another user.
        guard Directory.status(of: directory).owner == geteuid() else {
            throw CommandFailure("run this as the user that owns \(directory), which the server runs as")
        }
        // A server that starts meanwhile has the directory, and reads the file again.
        let spareSpace = SpareSpace()
        spareSpace.lend { bytes in
            (try? EmbeddedEngine.whileUnused(directory) { $0.release(bytes) }) ?? false
        }
        try IdentityDirectory(dataDirectory: directory).revocations(spareSpace: spareSpace)
            .revoke(uid: uid, before: moment())
    }
}
