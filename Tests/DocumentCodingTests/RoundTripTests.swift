// Random documents of every type, through the containers and through `[String: Any]`, against the model's own writer.

import Basics
import DocumentCoding
import DocumentModel
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct RoundTripTests {
    static let seeds: [UInt64] = [1, 2, 3, 20_261_120]

    @Test(arguments: seeds)
    func `Random documents are encoded to the canonical bytes`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        let encoder = FirestoreEncoder()
        for number in 0..<200 {
            let fields = random.fields(depth: 5).withFiniteDoubles
            let bytes = try encoder.documentBytes(CodableValue(.map(fields)))
            expectEqual(bytes, fields.documentBytes, "document \(number) of seed \(seed)")
            let validity = try DocumentValidator.validate(fields: bytes.span.bytes)
            expect(validity.isCanonical, "document \(number) of seed \(seed)")
        }
    }

    @Test(arguments: seeds)
    func `Random documents are decoded from canonical bytes`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        let decoder = FirestoreDecoder()
        for number in 0..<150 {
            let fields = random.fields(depth: 5)
            let decoded = try decoder.decode(CodableValue.self, fields)
            expectEqual(decoded.value, .map(fields.preferringIntegers), "document \(number) of seed \(seed)")
        }
    }

    @Test(arguments: seeds)
    func `Random documents are decoded from every other valid form`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        let decoder = FirestoreDecoder()
        for number in 0..<150 {
            let fields = random.fields(depth: 4)
            let bytes = random.irregularDocumentBytes(of: fields)
            var decoded = try decoder.decode(CodableValue.self, fromDocumentBytes: bytes.span.bytes).value
            // Times below a microsecond are kept on reading.
            decoded = decoded.truncatingTimes
            expectEqual(decoded, .map(fields.preferringIntegers), "document \(number) of seed \(seed)")
        }
    }

    @Test(arguments: seeds)
    func `Random documents survive [String: Any]`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        for number in 0..<200 {
            let fields = random.fields(depth: 5)
            // A Swift dictionary takes different spellings of a letter for one key.
            guard Value.map(fields).hasDistinctSwiftKeys else { continue }
            let dictionary = try DocumentFields.dictionary(from: fields.documentBytes.span.bytes, owner: nil)
            let data = try DocumentFields.set(dictionary)
            expectEqual(data.fields, fields.documentBytes, "document \(number) of seed \(seed)")
            expect(data.mask == nil && data.transforms.isEmpty)
        }
    }

    @Test(arguments: seeds)
    func `Truncated and mutated bytes are errors or other documents, never a crash`(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        let decoder = FirestoreDecoder()
        for _ in 0..<60 {
            let bytes = random.fields(depth: 4).documentBytes
            for _ in 0..<20 {
                var hostile = bytes
                if hostile.isEmpty { continue }
                switch random.generator.below(3) {
                case 0: hostile.removeLast(random.generator.below(hostile.count) + 1)
                case 1:
                    hostile[random.generator.below(hostile.count)] = UInt8(truncatingIfNeeded: random.generator.next())
                default:
                    hostile.insert(
                        UInt8(truncatingIfNeeded: random.generator.next()), at: random.generator.below(hostile.count))
                }
                let asValue = try? decoder.decode(CodableValue.self, fromDocumentBytes: hostile.span.bytes)
                _ = try? decoder.decode([String: Field<Int>].self, fromDocumentBytes: hostile.span.bytes)
                let asDictionary = try? DocumentFields.dictionary(from: hostile.span.bytes, owner: nil)
                // What is read completely the one way has the same fields the other way.
                if let asDictionary, case .map(let map)? = asValue?.value, asValue?.value.hasDistinctSwiftKeys == true {
                    expectEqual(Set(asDictionary.keys), Set(map.entries.map(\.key)))
                }
            }
        }
    }

    @Test func `Bytes nested without end are refused`() {
        var value: [UInt8] = [0x58, 0]
        for _ in 0..<5000 {
            var writer = ByteBuffer()
            writer.withLengthPrefix(field: 9) { $0.appendField(1, bytes: value) }
            value = writer.copyBytes()
        }
        var writer = ByteBuffer()
        writer.withLengthPrefix(field: 2) { entry in
            entry.appendField(1, string: "a")
            entry.appendField(2, bytes: value)
        }
        let bytes = writer.copyBytes()
        #expect(throws: DecodingError.self) {
            try FirestoreDecoder().decode(CodableValue.self, fromDocumentBytes: bytes.span.bytes)
        }
        #expect(throws: MalformedDocument.self) { try DocumentFields.dictionary(from: bytes.span.bytes, owner: nil) }
    }
}

extension Value {
    fileprivate var truncatingTimes: Value {
        switch self {
        case .timestamp(let time):
            .timestamp(TimestampValue(seconds: time.seconds, nanoseconds: time.nanoseconds / 1000 * 1000))
        case .array(let elements): .array(elements.map(\.truncatingTimes))
        case .map(let map): .map(MapValue(map.entries.map { ($0.key, $0.value.truncatingTimes) }))
        default: self
        }
    }

    fileprivate var hasDistinctSwiftKeys: Bool {
        switch self {
        case .array(let elements): elements.allSatisfy(\.hasDistinctSwiftKeys)
        case .map(let map):
            Set(map.entries.map(\.key)).count == map.count && map.entries.allSatisfy(\.value.hasDistinctSwiftKeys)
        default: true
        }
    }
}
