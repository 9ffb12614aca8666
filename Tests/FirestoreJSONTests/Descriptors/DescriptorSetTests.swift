// The embedded descriptors: that they are whole and say what proto/ says. That they are current, Tools/generate-proto
// --check proves.

import FirestoreJSON
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct DescriptorSetTests {
    @Test func `Every file comes after those that it imports`() {
        var seen: Set<String> = []
        for file in DescriptorSet.files {
            expect(file.dependencies.allSatisfy(seen.contains), "\(file.name)")
            seen.insert(file.name)
        }
        expect(seen.contains("google/firestore/v1/service.proto"))
    }

    @Test func `Every type that a field or method names is declared`() {
        let files = DescriptorSet.files
        let messages = Set(files.flatMap(\.messages).map(\.fullName))
        let enumerations = Set(files.flatMap(\.enumerations).map(\.fullName))
        for field in files.flatMap(\.messages).flatMap(\.fields) {
            switch field.kind {
            case .message: expect(messages.contains(field.typeName), "\(field.name)")
            case .enumeration: expect(enumerations.contains(field.typeName), "\(field.name)")
            default: expect(field.typeName.isEmpty)
            }
        }
        for method in files.flatMap(\.services).flatMap(\.methods) {
            expect(messages.contains(method.inputType) && messages.contains(method.outputType), "\(method.name)")
        }
    }

    @Test func `Fields keep their names, numbers, kinds and oneofs`() throws {
        let value = try #require(message("google.firestore.v1.Value"))
        let integer = try #require(value.fields.first { $0.name == "integer_value" })
        expectEqual(integer.jsonName, "integerValue")
        expectEqual(integer.number, 2)
        expectEqual(integer.kind, .int64)
        expectEqual(integer.oneofIndex, 0)
        expectEqual(value.oneofs, ["value_type"])
        let query = try #require(message("google.firestore.v1.StructuredQuery"))
        let order = try #require(query.fields.first { $0.name == "order_by" })
        expect(
            order.isRepeated && order.typeName == "google.firestore.v1.StructuredQuery.Order" && order.oneofIndex == nil
        )
        let map = try #require(message("google.firestore.v1.MapValue")?.fields.first { $0.name == "fields" })
        expect(map.isMap && map.typeName == "google.firestore.v1.MapValue.FieldsEntry")
        expect(!order.isMap)
    }

    @Test func `Every message of proto is one that the JSON mapping can hold`() throws {
        for message in DescriptorSet.files.flatMap(\.messages) {
            // A bit for each field and oneof that has been set.
            expect(message.fields.count <= 64 && message.oneofs.count <= 64, "\(message.fullName)")
            // The keys of maps are read and written as strings.
            for field in message.fields where field.isMap {
                let entry = try #require(self.message(field.typeName))
                expectEqual(entry.fields.map(\.number), [1, 2], "\(field.typeName)")
                expectEqual(entry.fields.first?.kind, .string, "\(field.typeName)")
            }
        }
    }

    @Test func `Enumerations keep their values`() throws {
        let name = "google.firestore.v1.StructuredQuery.UnaryFilter.Operator"
        let operators = try #require(DescriptorSet.files.flatMap(\.enumerations).first { $0.fullName == name })
        expectEqual(
            operators.values.map(\.name), ["OPERATOR_UNSPECIFIED", "IS_NAN", "IS_NULL", "IS_NOT_NAN", "IS_NOT_NULL"])
        expectEqual(operators.values.map(\.number), [0, 2, 3, 4, 5])
    }

    @Test func `The service has all seventeen methods, and each is a symbol`() throws {
        let file = try #require(DescriptorSet.files.first { $0.name == "google/firestore/v1/service.proto" })
        expectEqual(file.services.map(\.fullName), ["google.firestore.v1.Firestore"])
        expectEqual(file.services[0].methods.count, 17)
        expect(file.symbols.contains("google.firestore.v1.Firestore.RunQuery"))
    }

    @Test func `Fields come by increasing number, and every oneof has a name`() throws {
        for message in DescriptorSet.files.flatMap(\.messages) {
            let numbers = message.fields.map(\.number)
            expectEqual(numbers, numbers.sorted())
            expect(Set(message.oneofs).count == message.oneofs.count && !message.oneofs.contains(""))
        }
        let root = Repository.url("proto")
        let declared = try DescriptorSet.files.map { file in
            try String(contentsOf: root.appending(path: file.name), encoding: .utf8).matches(of: /\boneof \w+ \{/).count
        }
        expectEqual(DescriptorSet.files.map { file in file.messages.map(\.oneofs.count).reduce(0, +) }, declared)
    }

    private func message(_ name: String) -> MessageDescriptor? {
        DescriptorSet.files.flatMap(\.messages).first { $0.fullName == name }
    }
}
