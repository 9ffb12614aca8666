// Results come back from their bytes as they were.

import Basics
import DocumentModel
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)))
struct EncodedResultTests {
    private func roundTrip(_ result: BatchWriteResult) -> (BatchWriteResult?, Int) {
        var writer = ByteBuffer()
        EncodedResult.write(result, into: &writer)
        return (EncodedResult.read(writer.bytes), writer.count)
    }

    @Test(arguments: [UInt64(51), 52, 53])
    func `Random results survive`(seed: UInt64) throws {
        print("seed \(seed)")
        var random = RandomDocuments(seed: seed)
        for _ in 0..<200 {
            var outcomes: [Result<WriteResult, RequestError>] = []
            for _ in 0..<random.generator.below(12) {
                switch random.generator.below(5) {
                case 0: outcomes.append(.failure(RequestError(.notFound, random.text())))
                case 1: outcomes.append(.success(WriteResult(updateMicroseconds: nil)))
                case 2: outcomes.append(.success(WriteResult(updateMicroseconds: 42)))
                case 3:
                    outcomes.append(
                        .success(
                            WriteResult(
                                updateMicroseconds: 1_000,
                                transformResults: [EncodedValue(canonical: random.byteArray() + [1])])))
                default: outcomes.append(.success(WriteResult(updateMicroseconds: 1_000)))
                }
            }
            let result = BatchWriteResult(commitMicroseconds: 1_000, outcomes: outcomes)
            let (read, _) = roundTrip(result)
            let found = try #require(read)
            expectEqual(found.commitMicroseconds, result.commitMicroseconds)
            expectEqual(found.outcomes, result.outcomes)
        }
    }

    @Test
    func `A thousand plain sets take a dozen bytes`() {
        let outcomes = [Result<WriteResult, RequestError>](
            repeating: .success(WriteResult(updateMicroseconds: 1_700_000_000_000_000)), count: 1_000)
        let (read, bytes) = roundTrip(BatchWriteResult(commitMicroseconds: 1_700_000_000_000_000, outcomes: outcomes))
        expectEqual(read?.outcomes.count, 1_000)
        expect(bytes <= 13)
    }

    @Test
    func `Damaged bytes are not read and do not trap`() {
        var generator = SeededGenerator(seed: 54)
        for _ in 0..<20_000 {
            let bytes = (0..<generator.below(24)).map { _ in UInt8(generator.below(256)) }
            if let read = EncodedResult.read(bytes.byteSpan) {
                expect(read.outcomes.count <= Limits.requestBytes * 24)
            }
        }
        for bytes in [[], [1, 9, 1]] as [[UInt8]] {
            let isResult = EncodedResult.read(bytes.byteSpan) != nil
            expect(!isResult)
        }
    }
}
