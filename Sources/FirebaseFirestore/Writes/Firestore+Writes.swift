// How writes are made: applied to the cache at once, then sent in the order in which the program issued them, on one
// connection, with request identifiers, until the server accepts or rejects them.

import Basics
import DocumentModel
import FirebaseCore
import Foundation
import HearthClient

extension Firestore {
    /// Applies the writes of a call that the program does not await, and sends them.
    ///
    /// - Parameter completion: called on a thread of the library with `nil` after the acknowledgement. Without one the
    ///   error goes to the log.
    func enqueue(_ recorder: WriteRecorder, completion: (@Sendable (RequestError?) -> Void)?) {
        let documents = recorder.documents
        submit(recorder, completion: completion ?? { self.log($0, of: documents) })
    }

    /// Logs an error of a write that nobody else gets. The end of the client is not one.
    private func log(_ error: RequestError?, of documents: [String]) {
        guard let error, error.code != .cancelled, let first = documents.first else { return }
        let path = String(Substring(first.utf8.dropFirst(documentsRoot.utf8.count + 1)))
        let others = documents.count > 1 ? " and \(documents.count - 1) more" : ""
        FirebaseLog.write(.warning, "A write of \(path)\(others) failed: \(error.message) (\(error.code))")
    }

    /// Sends the writes of a call that the program awaits. When its task is cancelled, writes that have not left are
    /// withdrawn; those that have may be applied or not.
    nonisolated(nonsending) func perform(_ recorder: WriteRecorder) async throws {
        if Task.isCancelled { throw NSError.taskWasCancelled }
        let error: RequestError? = await waiting { cancellation, completion in
            submit(recorder, cancellation: cancellation, completion: completion)
        }
        if let error { throw error.asNSError }
    }

    /// Sends the writes of a call with a completion of the user, which runs on the user's queue.
    func enqueue(_ recorder: WriteRecorder, userCompletion: (((any Error)?) -> Void)?) {
        guard let userCompletion else { return enqueue(recorder, completion: nil) }
        let box = UncheckedBox(userCompletion)
        enqueue(recorder) { error in
            self.callBack { box.value(error?.asNSError) }
        }
    }

    private func submit(
        _ recorder: WriteRecorder, cancellation: Cancellation? = nil,
        completion: @escaping @Sendable (RequestError?) -> Void
    ) {
        checkUsable()
        if let failure = recorder.failure { return completion(failure) }
        let engine: SyncEngine
        do throws(RequestError) {
            engine = try self.engine()
        } catch {
            return completion(error)
        }
        // An empty batch.
        if recorder.documents.isEmpty { return completion(nil) }
        let request = recorder.writes.request()
        guard pendingWrites.begin(byteCount: request.count) else {
            return completion(
                RequestError(
                    .resourceExhausted, "More than \(pendingWrites.bytesMax) bytes of writes are pending."))
        }
        engine.write(request, cancellation: cancellation) { [pendingWrites] error in
            // First the ledger: code that gets the acknowledgement may read at once.
            pendingWrites.finish(byteCount: request.count)
            completion(error)
        }
    }
}
