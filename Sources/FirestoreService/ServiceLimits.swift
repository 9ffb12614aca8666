// How much the service does for one call. Limits of connections and frames are the transport's, those of the store its
// own.

package import Listening
package import Pipelines

/// Bounds of single answers; each has a flag of `hearth serve`.
package struct ServiceLimits: Sendable {
    /// Documents on a page of ListDocuments, also where the client asks for more or for none in particular.
    package var listPageDocuments = 300
    /// Bytes after which a page of a listing ends, however many entries it has.
    package var listPageBytes = 4 << 20
    /// Ids on a page of ListCollectionIds, also where the client asks for more or for none in particular.
    package var collectionIDPageEntries = 1_000
    /// Cursors of one PartitionQuery, on all its pages together, also where the client asks for more.
    package var partitionCursors = 1_000
    /// Names in one BatchGetDocuments.
    package var batchGetDocuments = 100_000
    /// Writes in one BatchWrite.
    package var batchWriteWrites = 10_000

    /// Queries that need an index which is not declared are refused, as the cloud does.
    package var requiresIndexes = false

    /// Calls that take at least as long are logged, in milliseconds; 0 logs none.
    package var slowCallMilliseconds: UInt64 = 1_000

    /// Bounds on the listeners of each loop.
    package var listeners = ListenLimits()

    /// Bounds on the memory and the steps of pipelines.
    package var pipelines = PipelineOptions()

    package init() {}

    /// Has the listeners of a loop hold so many bytes at most: half of them for targets, half for changes.
    package mutating func boundListeners(bytes: Int) {
        listeners.targetBytes = bytes / 2
        listeners.allChanges = bytes / 2 / ListenHub.changeBytes
    }
}
