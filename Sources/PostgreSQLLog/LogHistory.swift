// Groups that a server does not have in memory any more, read from the database.

internal import Basics
package import Replication
internal import Storage

/// The groups of a store in its tables, for threads that may wait. Thread-safe: one thread reads at a time.
final class LogHistory: @unchecked Sendable {
    // Sendable: `session` and `reader` are used under the lock alone.

    private let tables: StoreTables
    private let store: StoreIdentity
    private let lock = Monitor(())
    /// Open while a reader has not caught up.
    private let session: KeptSession
    /// Continues where the last call ended.
    private var reader: LogReader?

    init(database: String, tables: StoreTables, store: StoreIdentity) {
        self.tables = tables
        self.store = store
        session = KeptSession(address: database)
    }

    /// The records of groups after a version.
    ///
    /// - Parameters:
    ///   - version: the last record that is known; it may be one within a group.
    ///   - last: of a group; later ones are left out, since this server may not have them yet.
    ///   - bytesMax: more groups are left for the next call once there are so many bytes.
    /// - Returns: version (8 bytes, little-endian), length (4 bytes), bytes, for each.
    /// - Throws: `versionTooOld` if what comes next has been trimmed, `corrupt`, `inputOutput`.
    func records(after version: UInt64, upTo last: UInt64, bytesMax: Int) throws(StorageError) -> [UInt8] {
        try locked { session throws in
            var bytes: [UInt8] = []
            var reached = version
            while bytes.count < bytesMax, reached < last {
                let groups = try self.reader(after: reached, session).next().prefix { $0.header.version <= last }
                // Trimmed, or not those that this server has: the database was restored.
                guard let end = groups.last else { throw LogLookup.trimmed(reached) }
                for group in groups { bytes += group.records }
                reached = end.header.version
            }
            if reached >= last { self.close() }
            return bytes
        }
    }

    /// A version after which everything can be read: that of the last base; 0 without one.
    func startVersion() throws(StorageError) -> UInt64 {
        try locked { session throws in
            defer { self.close() }
            return BaseRow(try session.run(self.tables.lastBase))?.place.version ?? 0
        }
    }

    // MARK: Under the lock

    private func locked<Output>(_ body: (PostgreSQLSession) throws -> Output) throws(StorageError) -> Output {
        do {
            return try lock.withLock { _ throws in
                do {
                    return try session.use(body)
                } catch {
                    close()
                    throw error
                }
            }
        } catch let error as StorageError {
            throw error
        } catch {
            throw StorageError(.inputOutput, "the log of the cluster cannot be read: \(error)")
        }
    }

    private func close() {
        session.close()
        reader = nil
    }

    /// A reader whose next group is the first one after a version.
    private func reader(after version: UInt64, _ session: PostgreSQLSession) throws -> LogReader {
        if let reader, reader.place.version == version { return reader }
        let place = try LogLookup.place(before: version, tables, session)
        let made = LogReader(session, tables, of: store, after: place)
        reader = made
        return made
    }
}

/// Where versions are in the log of a store.
package enum LogLookup {
    /// The last group that is not after a version, or what the first group follows: reading continues after it.
    /// - Throws: `SQLFailure`; `versionTooOld` if groups after the version have been trimmed.
    package static func place(
        before version: UInt64, _ tables: StoreTables, _ session: PostgreSQLSession
    ) throws -> LogPlace {
        let names = try session.run(tables.tablesOfLog).map { $0.text(0) }
        for name in names {
            let row = try session.run(StoreTables.lastPlace(upTo: version, in: "hearth." + name)).first
            if let sequence = row?.number(0), let hash = row?.number(1), let found = row?.number(2) {
                return LogPlace(sequence: sequence, hash: hash, version: found)
            }
        }
        // The first table follows the base of a directory that was migrated, or nothing.
        guard names.last == tables.firstTable else { throw trimmed(version) }
        let start = BaseRow(try session.run(tables.migratedBase))?.place ?? .start
        guard start.version <= version else { throw trimmed(version) }
        return start
    }

    static func trimmed(_ version: UInt64) -> StorageError {
        StorageError(.versionTooOld, "the log of the cluster has no groups right after version \(version) any more")
    }
}
