// Broken bytes never crash: every message type reads every cut and many mutations of every other's bytes.

import DocumentModel
import FirestoreMessages
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct HostileMessageTests {
    /// Reads bytes as every message there is; the outcome does not matter, coming back does.
    private func readAsEverything(_ bytes: [UInt8]) -> Int {
        let readers: [(RawSpan) throws -> Void] = [
            { _ = try GetDocumentRequest(wire: $0) }, { _ = try BatchGetDocumentsRequest(wire: $0) },
            { _ = try BatchGetDocumentsResponse(wire: $0) }, { _ = try ListDocumentsRequest(wire: $0) },
            { _ = try ListDocumentsResponse(wire: $0) }, { _ = try ListCollectionIdsRequest(wire: $0) },
            { _ = try ListCollectionIdsResponse(wire: $0) }, { _ = try CreateDocumentRequest(wire: $0) },
            { _ = try UpdateDocumentRequest(wire: $0) }, { _ = try DeleteDocumentRequest(wire: $0) },
            { _ = try BeginTransactionRequest(wire: $0) }, { _ = try BeginTransactionResponse(wire: $0) },
            { _ = try RollbackRequest(wire: $0) }, { _ = try RunQueryRequest(wire: $0) },
            { _ = try RunQueryResponse(wire: $0) }, { _ = try CommitResponse(wire: $0) },
            { _ = try BatchWriteResponse(wire: $0) }, { _ = try StatusMessage(wire: $0) },
            { _ = try PartitionQueryRequest(wire: $0) }, { _ = try PartitionQueryResponse(wire: $0) },
            { _ = try WriteResponse(wire: $0) }, { try WriteRequestView($0).forEachWrite { _ = $0.byteCount } },
            { try CommitRequestView($0).forEachWrite { _ = $0.byteCount } },
            { try BatchWriteRequestView($0).forEachWrite { _ = $0.byteCount } },
        ]
        return readers.count { read in (try? read(bytes.span.bytes)) != nil }
    }

    private var samples: [[UInt8]] {
        let time = TimestampValue(seconds: 1_700_000_000, nanoseconds: 123_456_000)
        let document = DocumentMessage(
            name: "projects/p/databases/d/documents/c/x", fields: Hex.decode("1207 0a0161 12021001"), createTime: time,
            updateTime: time)
        return [
            GetDocumentRequest(name: "projects/p", consistency: .readTime(time)).encodedBytes(),
            BatchGetDocumentsResponse(result: .found(document), transaction: [1], readTime: time).encodedBytes(),
            ListDocumentsResponse(documents: [document, document], nextPageToken: "token").encodedBytes(),
            UpdateDocumentRequest(document: document, precondition: .updateTime(time)).encodedBytes(),
            RunQueryRequest(
                parent: "p", query: StructuredQuery(from: [CollectionSelector(collectionID: "c")], limit: 3)
            ).encodedBytes(),
            BatchWriteResponse(
                writeResults: [WriteResult(updateMicroseconds: 1)],
                statuses: [StatusMessage(code: .aborted, message: "m")]
            ).encodedBytes(),
        ]
    }

    @Test
    func `A message cut anywhere is read or refused`() {
        for sample in samples {
            for length in 0...sample.count { _ = readAsEverything(Array(sample.prefix(length))) }
            // The whole sample is at least readable as what it is.
            expect(readAsEverything(sample) > 0)
        }
    }

    @Test
    func `Mutated messages are read or refused`() {
        var random = SeededGenerator(seed: .random(in: 0 ... .max))
        var readable = 0
        for _ in 0..<300 {
            for sample in samples {
                var bytes = sample
                for _ in 0...random.below(4) { bytes[random.below(bytes.count)] = UInt8(random.below(256)) }
                readable += readAsEverything(bytes)
            }
        }
        expect(readable > 0, "seed \(random.seed): no mutation left anything readable")
    }
}
