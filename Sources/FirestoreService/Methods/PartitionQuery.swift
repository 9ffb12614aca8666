// PartitionQuery: cursors that cut a collection group into parts of about the same size.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import QueryEngine

extension FirestoreService {
    func partitionQuery(_ call: Call, _ request: RawSpan) throws {
        let message = try PartitionQueryRequest(wire: request)
        guard let query = message.query else { throw RequestError.invalidArgument("A query is missing.") }
        guard message.partitionCount > 0 else {
            throw RequestError.invalidArgument("The partition count must be positive, not \(message.partitionCount).")
        }
        guard message.pageSize >= 0 else { throw RequestError.invalidArgument("A page size cannot be negative.") }
        // No more than asked for; fewer is within the contract.
        let cuts = Int(min(message.partitionCount, Int64(limits.partitionCursors)))
        try withParent(call, message.parent) { (parent, access) throws(RequestError) in
            // Cursors have names of documents.
            try access?.requireUnrestricted()
            guard parent.isRoot else {
                throw .invalidArgument("The parent of a partition query must be the documents root of a database.")
            }
        }
        let token = message.pageToken.isEmpty ? nil : try PageToken(message.pageToken)
        let run = try message.parent.withUTF8Span { (parent) throws(RequestError) in
            try GroupPartitioner(query, parent: parent, cuts: cuts)
        }
        let size = message.pageSize == 0 ? cuts : min(Int(message.pageSize), cuts)
        try withReadPoint(call, try message.consistency.selector(in: store), in: run.database) { service, point in
            try PartitionSearch(service, call, run, at: point, pageSize: size, after: token).findMore()
        }
    }
}

/// One search, in steps between which other calls have their turn. A step waits for storage beside the loop.
private final class PartitionSearch {
    private let service: FirestoreService
    private let call: Call
    private var run: GroupPartitioner
    private let point: ReadPoint
    private let pageSize: Int
    /// The last cursor of the page before.
    private let after: Cursor?

    init(
        _ service: FirestoreService, _ call: Call, _ run: GroupPartitioner, at point: ReadPoint, pageSize: Int,
        after token: PageToken?
    ) throws(RequestError) {
        self.service = service
        self.call = call
        self.run = run
        self.point = point
        self.pageSize = pageSize
        switch token {
        case nil: after = nil
        case .cursor(let cursor) where cursor.values.first?.referenceBytes != nil: after = cursor
        default: throw .invalidArgument("The page token belongs to another listing.")
        }
    }

    func findMore() throws(RequestError) {
        do throws(RequestError) {
            if try run.next(from: service.reader.source(at: point, .pends)) { return answer() }
        } catch {
            guard error.isPending else { throw error }
            return service.repeatWhenReady(call) { _ in try self.findMore() }
        }
        service.continueLater(call) { _ in try self.findMore() }
    }

    private func answer() {
        let root = run.database.documentsRoot
        var cursors = run.result.map { path in
            Cursor(values: [EncodedValue(.reference("\(root)/\(String(decoding: path, as: UTF8.self))"))], before: true)
        }
        if let last = after?.values.first?.referenceBytes {
            cursors.removeAll { cursor in
                guard let name = cursor.values.first?.referenceBytes else { return true }
                return ResourcePath.compareNames(name.byteSpan, last.byteSpan) <= 0
            }
        }
        var response = PartitionQueryResponse()
        if cursors.count > pageSize {
            cursors.removeLast(cursors.count - pageSize)
            response.nextPageToken = cursors.last.map { PageToken.cursor($0).text } ?? ""
        }
        response.partitions = cursors
        service.succeed(call) { response.encode(into: &$0) }
    }
}
