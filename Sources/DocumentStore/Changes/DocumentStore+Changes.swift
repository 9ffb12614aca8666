// What a listener asks of the store: the change feed, read times, and reads at versions it has been given.

package import Basics
package import DocumentModel
internal import Storage

extension DocumentStore {
    /// Subscribes to the changes of commits.
    ///
    /// - Parameter wake: called after commits have become visible, on a thread of the store; must not block.
    /// - Returns: the subscription, which lasts until it is released.
    package func subscribeToChanges(_ wake: @escaping @Sendable () -> Void) -> ChangeSubscription {
        changes.subscribe(wake)
    }

    /// A time, in microseconds, up to which every commit is visible. Later commits have later times.
    package var currentReadTime: UInt64 { versions.readTime() }

    /// The earliest time that can be read, in microseconds.
    package var oldestReadTime: UInt64 { engine.oldestReadableVersion.microseconds }

    /// The earliest time that a client may continue from, in microseconds. A state of an earlier time cannot be
    /// compared with the present one: it is too old, or it may come from a directory of which this one is a backup.
    package var oldestResumeTime: UInt64 { max(oldestReadTime, engine.timelineStart.microseconds) }

    /// The same for a database, whose history may have stayed in another store.
    package func oldestResumeTime(of database: DatabaseName) -> UInt64 {
        let tenure = databases.entry(of: database)?.tenure
        return tenure?.state == .owned ? max(oldestResumeTime, tenure?.version ?? 0) : oldestResumeTime
    }

    /// The database that a number stands for in changes; nil if there is none.
    package func databaseName(of number: UInt32) -> DatabaseName? { databases.name(of: number) }

    /// Whether a database is empty for readers of a version because it was deleted.
    package func isHidden(database number: UInt32, at version: UInt64) -> Bool {
        databases.isHidden(number, at: version)
    }

    /// The databases whose deletion became visible with a version of this range, in microseconds.
    package func deletedDatabases(after position: UInt64, through readTime: UInt64) -> [DatabaseName] {
        databases.deleted(after: position, through: readTime)
    }
}

extension StoreReader {
    /// The state of a database at a time that the store has given out as read time.
    ///
    /// - Throws: `UNAVAILABLE` if another store has the database, or `FAILED_PRECONDITION` if another one had it then.
    package func readPoint(
        atReadTime microseconds: UInt64, in database: DatabaseName
    ) throws(RequestError) -> ReadPoint {
        try point(database, version: microseconds, readTime: microseconds)
    }
}
