// A directory without a state: filled from a base, or discarded if it can be filled again.

import Basics
import DocumentStore
import EmbeddedEngine
import FileSystem
import PostgreSQLLog
import Replication
import Storage

extension Cluster {
    func bases(of store: StoreIdentity) -> StoreBases {
        StoreBases(tables, directory: baseSettings.directory, of: store)
    }

    /// Makes a new directory: from a base, or from nothing if the log has everything. Waits while there is no base that
    /// this server can use.
    func fill(_ row: StoreRow) throws {
        if Directory.exists(directory) {
            // What was being discarded when the process ended goes; anything else stays.
            if try ClusterFile.read(in: directory) != nil {
                // Another process may be receiving a base there.
                try EmbeddedEngine.whileUnused(directory) { _ in try discard() }
            } else if try BasePlacing.hasState(directory) {
                throw CommandFailure("\(directory) has a part of a data directory: name an empty directory")
            }
        }
        var reported: String?
        while true {
            let session = try connect()
            defer { session.close() }
            let start = BaseStart(bases: bases(of: row.lease.store), session: session, log: log)
            let outcome = try interruptibly {
                try start.attempt(to: directory) { [tables] directory in
                    try ClusterFile.write(tables.name, row.lease.store, timeline: row.timeline, in: directory)
                }
            }
            guard case .waits(let why) = outcome else { return }
            if why != reported { log(.error, "base_waiting", ["store": tables.name, "message": why]) }
            reported = why
            if Shutdown.isRequested || reopening.isStopping {
                throw CommandFailure("ended while waiting for a base of the store \(tables.name): \(why)")
            }
            SystemThread.sleep(microseconds: 1_000_000)
        }
    }

    /// Does what may take hours. A signal ends the process at once, unless it serves other stores meanwhile.
    private func interruptibly<Output>(_ body: () throws -> Output) rethrows -> Output {
        let start = isServed ? nil : InterruptibleStart(log)
        defer { start?.end() }
        return try body()
    }

    /// Looks whether this server could start again if it gave up its state.
    /// - Throws: a `CommandFailure` if it could not.
    func checkReplaceable() throws {
        let reason = try withSession { session in
            let row = try self.row(session)
            return try BaseStart(bases: bases(of: row.lease.store), session: session, log: log).unusableReason()
        }
        guard let reason else { return }
        throw CommandFailure(
            "the state in \(directory) is not that of the cluster any more, and is kept, since no other could be had: "
                + "\(reason)")
    }
}
