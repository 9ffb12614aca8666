// Indexes of the cache: made when queries read many documents in vain, in steps between other work.

import Basics
import ClientCache

extension SyncEngine {
    /// Whether queries of the cache begin to make the indexes that they lack.
    func setIndexAutoCreation(_ isEnabled: Bool) { queue.async { self.store.createsIndexes = isEnabled } }

    /// Removes all indexes of the cache.
    func deleteAllIndexes() {
        queue.async {
            if self.isClosed { return }
            do throws(RequestError) { try self.store.removeAllIndexes() } catch { self.report(error) }
            self.continueIndexes()
        }
    }

    /// Replaces the indexes of the cache.
    ///
    /// - Parameter completion: called on the engine's queue when the definitions are stored.
    func setIndexes(_ indexes: [LocalIndexDefinition], _ completion: @escaping @Sendable (RequestError?) -> Void) {
        queue.async {
            if self.isClosed { return completion(RequestError(.cancelled, "The client has been terminated.")) }
            do throws(RequestError) {
                try self.store.setIndexes(indexes)
                completion(nil)
            } catch {
                completion(error)
            }
            self.continueIndexes()
        }
    }

    /// Adds or removes index entries until none is left to do, a few at a time. If the disk is full, it tries again
    /// after a pause. On the engine's queue.
    func continueIndexes() {
        if isIndexing || isClosed || !store.hasIndexWork { return }
        isIndexing = true
        queue.async { self.stepIndexes() }
    }

    private func stepIndexes() {
        isIndexing = false
        if isClosed { return }
        do throws(RequestError) {
            try store.stepIndexes()
        } catch {
            indexFailure.occurred(error)
            isIndexing = true
            return queue.async(after: Self.pause) { [weak self] in self?.stepIndexes() }
        }
        indexFailure.ended()
        continueIndexes()
    }
}
