// The generated field numbers, and the tags that stand in code as constants, against the descriptors.

import Basics
import DocumentModel
import FirestoreJSON
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct FieldNumberTests {
    @Test func `The generated constants are the fields of the descriptors, no more and no fewer`() throws {
        let declared = declaredNumbers()
        let generated = try generatedNumbers()
        expect(declared.count > 200)
        expectEqual(Set(generated.keys).symmetricDifference(declared.keys), [])
        for (field, number) in declared { expectEqual(generated[field], number, "\(field)") }
    }

    @Test func `The tags of values and documents are those of the descriptors`() {
        let numbers = declaredNumbers()
        let value = "google.firestore.v1.Value"
        func tag(_ field: String, _ type: WireType) -> UInt32 { WireTag(field: numbers[field] ?? 0, type).rawValue }
        expectEqual(ValueTag.boolean, tag("\(value).booleanValue", .varint))
        expectEqual(ValueTag.integer, tag("\(value).integerValue", .varint))
        expectEqual(ValueTag.double, tag("\(value).doubleValue", .fixed64))
        expectEqual(ValueTag.reference, tag("\(value).referenceValue", .lengthDelimited))
        expectEqual(ValueTag.map, tag("\(value).mapValue", .lengthDelimited))
        expectEqual(ValueTag.geoPoint, tag("\(value).geoPointValue", .lengthDelimited))
        expectEqual(ValueTag.array, tag("\(value).arrayValue", .lengthDelimited))
        expectEqual(ValueTag.timestamp, tag("\(value).timestampValue", .lengthDelimited))
        expectEqual(ValueTag.null, tag("\(value).nullValue", .varint))
        expectEqual(ValueTag.string, tag("\(value).stringValue", .lengthDelimited))
        expectEqual(ValueTag.bytes, tag("\(value).bytesValue", .lengthDelimited))
        expectEqual(ValueTag.pipelineFields.lowerBound, numbers["\(value).fieldReferenceValue"])
        expectEqual(ValueTag.pipelineFields.upperBound, numbers["\(value).variableReferenceValue"])
        let entry = "google.firestore.v1.Document.FieldsEntry"
        expectEqual(UInt32(DocumentTag.name), tag("google.firestore.v1.Document.name", .lengthDelimited))
        expectEqual(UInt32(DocumentTag.field), tag("google.firestore.v1.Document.fields", .lengthDelimited))
        expectEqual(UInt32(DocumentTag.createTime), tag("google.firestore.v1.Document.createTime", .lengthDelimited))
        expectEqual(UInt32(DocumentTag.updateTime), tag("google.firestore.v1.Document.updateTime", .lengthDelimited))
        expectEqual(UInt32(DocumentTag.mapEntry), tag("google.firestore.v1.MapValue.fields", .lengthDelimited))
        expectEqual(UInt32(DocumentTag.arrayElement), tag("google.firestore.v1.ArrayValue.values", .lengthDelimited))
        expectEqual(UInt32(DocumentTag.entryKey), tag("\(entry).key", .lengthDelimited))
        expectEqual(UInt32(DocumentTag.entryValue), tag("\(entry).value", .lengthDelimited))
        expectEqual(FieldNumber.MapEntry.key, numbers["\(entry).key"])
        expectEqual(FieldNumber.MapEntry.value, numbers["\(entry).value"])
    }

    @Test func `A tag's bytes are those of its varint`() {
        for (field, type) in [
            (1, WireType.varint), (15, .fixed64), (16, .varint), (17, .lengthDelimited), (2_047, .fixed32),
        ] {
            var writer = ByteBuffer()
            writer.appendTag(field: field, type)
            let bytes =
                field < 16
                ? [WireTag.byte(field, type)] : [WireTag.firstByte(field, type), WireTag.secondByte(field)]
            expectEqual(writer.copyBytes(), bytes)
        }
    }

    /// Every field of `proto/` by the full name of its message and its own in lowerCamelCase.
    private func declaredNumbers() -> [String: Int] {
        var numbers: [String: Int] = [:]
        // v1alpha has the messages of v1.
        for file in DescriptorSet.files where !file.package.hasSuffix("alpha") {
            for message in file.messages {
                for field in message.fields { numbers["\(message.fullName).\(field.jsonName)"] = field.number }
            }
        }
        return numbers
    }

    /// The constants in the generated file, by the names that the comments before them give their messages.
    private func generatedNumbers() throws -> [String: Int] {
        let path = "Sources/DocumentModel/Wire/FieldNumber+Generated.swift"
        var numbers: [String: Int] = [:]
        var messages: [String?] = []
        var named: String?
        for line in try String(contentsOf: Repository.url(path), encoding: .utf8).split(separator: "\n") {
            if let match = line.firstMatch(of: /The fields of `(.+)`/) {
                named = String(match.1)
            } else if line.contains(/(enum|extension) .+\{$/) {
                messages.append(named)
                named = nil
            } else if let match = line.firstMatch(of: /static var `?(\w+)`?: Int \{ (\d+) \}/) {
                let message = try #require(messages.last ?? nil)
                expectNil(numbers.updateValue(try #require(Int(match.2)), forKey: "\(message).\(match.1)"))
            } else if line.contains("}") {
                messages.removeLast()
            }
        }
        return numbers
    }
}
