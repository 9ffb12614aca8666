// Filling a store with documents as fast as it takes them.

import DocumentModel
import DocumentStore
import Foundation

extension DocumentStore {
    private static let commitsOpenMax = 8
    private static let writesPerCommit = 500

    /// Commits documents in batches, eight at a time.
    ///
    /// - Parameter document: the path and the fields of a document, by its number.
    /// - Returns: documents a second.
    func fill(_ count: Int, _ document: (Int) -> (path: String, fields: [UInt8])) throws -> Double {
        let start = Date()
        let room = DispatchSemaphore(value: Self.commitsOpenMax)
        for first in stride(from: 0, to: count, by: Self.writesPerCommit) {
            let batch = (first..<min(first + Self.writesPerCommit, count)).map(document)
            room.wait()
            commit(CommitRequest(writes: try IndexFigures.list(batch))) { result in
                if case .failure(let error) = result { fatalError("\(error)") }
                room.signal()
            }
        }
        for _ in 0..<Self.commitsOpenMax { room.wait() }
        for _ in 0..<Self.commitsOpenMax { room.signal() }
        return Double(count) / Date().timeIntervalSince(start)
    }
}
